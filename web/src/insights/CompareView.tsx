import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "preact/hooks";
import { compareRuns, listRuns } from "../api/client";
import type { ListedRun } from "../api/shapes";
import { go, hrefOf, type Route } from "../route";
import { plain } from "../text/inert";
import { dateTime } from "../text/times";
import { Skeleton, Trouble } from "../ui/Trouble";
import { ComparisonTable } from "./ComparisonTable";

export default function CompareView({ query }: { query: Route["query"] }) {
  const { a = "", b = "" } = query;
  const compared = useQuery({
    queryKey: ["compare", a, b],
    queryFn: ({ signal }) => compareRuns(a, b, signal),
    enabled: Boolean(a && b),
  });
  return (
    <>
      <h1>Compare two runs</h1>
      <Choose key={`${a} ${b}`} a={a} b={b} />
      {compared.error && (
        <Trouble
          error={compared.error}
          retry={() => compared.refetch()}
          busy={compared.isFetching}
        />
      )}
      {compared.isLoading && <Skeleton rows={4} what="comparison" />}
      {compared.data && <ComparisonTable found={compared.data} />}
    </>
  );
}

/** Run ids are pasted, or chosen from the newest runs: of the pipeline of `a` once that is known. */
function Choose({ a, b }: { a: string; b: string }) {
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const recent = useQuery({
    queryKey: ["recent-runs"],
    queryFn: ({ signal }) => listRuns({ limit: 100 }, signal),
  });
  const runs = recent.data?.runs ?? [];
  const pipeline = runs.find((run) => run.run_id === first)?.pipeline;
  const fitting = pipeline ? runs.filter((run) => run.pipeline === pipeline) : runs;
  const before = fitting[fitting.findIndex((run) => run.run_id === a) + 1]?.run_id;
  useEffect(() => {
    if (a && !b && before) setSecond(before);
  }, [a, b, before]);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    go(hrefOf(["compare"], { a: first.trim(), b: second.trim() }));
  };
  return (
    <form class="filters" aria-label="Runs to compare" onSubmit={onSubmit}>
      <RunField label="Run a" id="run-a" given={first} change={setFirst} runs={runs} />
      <RunField label="Run b" id="run-b" given={second} change={setSecond} runs={fitting} />
      <button type="submit" class="primary">
        Compare
      </button>
      {a && b && (
        <a class="button quiet" href={hrefOf(["compare"], { a: b, b: a })}>
          Swap
        </a>
      )}
    </form>
  );
}

interface FieldProps {
  label: string;
  id: string;
  given: string;
  change: (id: string) => void;
  runs: readonly ListedRun[];
}

function RunField({ label, id, given, change, runs }: FieldProps) {
  return (
    <label class="wide-field">
      {label}
      <input
        list={id}
        value={given}
        required
        placeholder="paste a run id, or choose"
        onInput={(event) => change(event.currentTarget.value)}
      />
      <datalist id={id}>
        {runs.map((run) => (
          <option key={run.run_id} value={run.run_id}>
            {`${plain(run.pipeline)} · ${run.status} · ${dateTime(run.started_at)}`}
          </option>
        ))}
      </datalist>
    </label>
  );
}
