import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RunFilter } from "../api/client";
import type { ListedRun } from "../api/shapes";
import type { Route } from "../route";
import { counted } from "../text/counts";
import { announce } from "../ui/announce";
import { Skeleton, Trouble } from "../ui/Trouble";
import { Filters } from "./Filters";
import { NoRuns } from "./NoRuns";
import { RunCard } from "./RunCard";
import { useRuns } from "./useRuns";

export function RunsView({ query }: { query: Route["query"] }) {
  const filter = filterOf(query);
  const { newest, runs, hasMore, loadMore, loadingMore, moreError } = useRuns(filter);
  const error = newest.error ?? newest.failureReason;
  const arrived = newest.data?.arrived ?? 0;
  useEffect(() => {
    if (arrived) announce(counted(arrived, "new run"));
  }, [arrived]);
  return (
    <>
      <h1>Runs</h1>
      <Filters query={query} pipelines={[...new Set(runs.map((run) => run.pipeline))]} />
      {error && (
        <Trouble
          error={error}
          retry={() => newest.refetch()}
          busy={newest.isFetching}
          kept={newest.data && "What is below was read before."}
        />
      )}
      {newest.isPending && !error && <Skeleton rows={5} what="runs" />}
      {runs.length > 0 && <Cards runs={runs} loadMore={loadMore} failed={moreError !== null} />}
      {newest.data && !runs.length && !hasMore && (
        <NoRuns filtered={Object.keys(filter).length > 0} />
      )}
      {moreError && <Trouble error={moreError} retry={loadMore} busy={loadingMore} />}
      {hasMore && !moreError && (
        <button type="button" class="more" onClick={loadMore} disabled={loadingMore}>
          {loadingMore ? "Loading older runs…" : "Load older runs"}
        </button>
      )}
    </>
  );
}

const STATUSES = new Set(["running", "succeeded", "failed", "cancelled", "stale"]);

function filterOf(query: Route["query"]): RunFilter {
  const { status = "", pipeline, from, to } = query;
  return {
    ...(STATUSES.has(status) && { status: status as NonNullable<RunFilter["status"]> }),
    ...(pipeline && { pipeline }),
    ...(from && { from }),
    ...(to && { to }),
  };
}

interface CardsProps {
  runs: readonly ListedRun[];
  loadMore: () => void;
  failed: boolean;
}

/** Only the cards that can be seen are in the document; its end asks for older runs. */
function Cards({ runs, loadMore, failed }: CardsProps) {
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(list.current?.offsetTop ?? 0), []);
  const cards = useWindowVirtualizer({
    count: runs.length,
    estimateSize: () => 170,
    overscan: 6,
    scrollMargin: top,
    getItemKey: (at) => runs[at]?.run_id ?? at,
  });
  const items = cards.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= runs.length - 1 && scrollY > 0 && !failed) loadMore();
  }, [last, runs.length, failed]);
  return (
    <ul class="cards" ref={list} style={{ height: cards.getTotalSize() }} aria-label="Runs">
      {items.map((item) => {
        const run = runs[item.index];
        return (
          run && (
            <li
              key={item.key}
              data-index={item.index}
              ref={cards.measureElement}
              style={{ transform: `translateY(${item.start - top}px)` }}
              aria-setsize={-1}
              aria-posinset={item.index + 1}
            >
              <RunCard run={run} />
            </li>
          )
        );
      })}
    </ul>
  );
}
