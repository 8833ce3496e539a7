import {
  type QueryClient,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useMemo } from "preact/hooks";
import { readRun } from "../api/client";
import type { Call, RunDetail } from "../api/shapes";
import { type Newest, rereadIn } from "../runs/live";

const NO_CALLS: readonly Call[] = [];
const A_CALL = /"step_id":"/g;
const TOTAL = /"agents_total":(\d+)/;

interface Progress {
  read: number;
  of: number;
}

/**
 * A run and all its calls, page after page; read again while it is not complete. Pages that were
 * read stay when a later one fails, and it goes on from there.
 */
export function useRun(run: string) {
  const queries = useQueryClient();
  const progressKey = ["progress", run];
  const pages = useInfiniteQuery({
    queryKey: ["run", run],
    queryFn: ({ pageParam, signal }) => {
      const report = reporter((progress) => queries.setQueryData(progressKey, progress));
      return readRun(run, pageParam || undefined, signal, report);
    },
    initialPageParam: "",
    getNextPageParam: (page: RunDetail) => page.next,
    structuralSharing: false,
    staleTime: 60_000,
    gcTime: 60_000,
    refetchInterval: (query) => {
      const head = query.state.data?.pages[0];
      if (query.state.error) return 30_000;
      return head && isOpen(head) ? rereadIn(head.totals?.agents_total ?? 0) : false;
    },
  });
  const { data: progress } = useQuery<Progress | null>({
    queryKey: progressKey,
    queryFn: () => null,
    enabled: false,
  });
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);

  const found = pages.data?.pages;
  const calls = useMemo(
    () =>
      found
        ? found.length === 1
          ? (found[0]?.calls ?? [])
          : found.flatMap((p) => p.calls)
        : NO_CALLS,
    [found],
  );
  const head = found?.[0];
  const listed = useMemo(() => (head ? undefined : fromList(queries, run)), [head, queries, run]);
  const known = (head ?? listed)?.totals?.agents_total;
  const total = Math.max(known ?? progress?.of ?? 0, calls.length);
  return {
    head,
    /** What the list of runs told of it, until the run itself is there. */
    listed,
    calls,
    /** Of the first reading: later ones go on behind what is shown. */
    loading:
      !head || hasNextPage ? { read: calls.length + (progress?.read ?? 0), of: total } : null,
    error: pages.error ?? pages.failureReason,
    busy: isFetching,
    retry: () => (hasNextPage ? fetchNextPage() : pages.refetch()),
  };
}

function fromList(queries: QueryClient, run: string): RunDetail | undefined {
  const lists = queries.getQueriesData<Newest>({ queryKey: ["runs"] });
  const found = lists.flatMap(([, data]) => data?.runs ?? []).find((it) => it.run_id === run);
  return found && { run: found, totals: found.totals, phases: found.phases, calls: [] };
}

function isOpen(head: RunDetail): boolean {
  const { run, totals, phases } = head;
  return run.status === "running" || totals?.source === "live" || phases?.partial === true;
}

/** Counts the calls in the text as it arrives, and tells a few times a second. */
function reporter(tell: (progress: Progress) => void): (piece: string) => void {
  let read = 0;
  let of = 0;
  let told = 0;
  tell({ read, of });
  return (piece) => {
    read += piece.match(A_CALL)?.length ?? 0;
    of ||= Number(TOTAL.exec(piece)?.[1] ?? 0);
    if (Date.now() - told < 100) return;
    told = Date.now();
    tell({ read, of });
  };
}
