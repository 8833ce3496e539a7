import type { Json } from "../api/json";
import type { RunDetail } from "../api/shapes";
import { JsonTree } from "../call/JsonTree";
import { hrefOf } from "../route";
import { CopyButton } from "../ui/Buttons";
import { Totals } from "../ui/Figures";
import { Inert, LongText } from "../ui/Inert";
import { PhaseStrip } from "../ui/PhaseStrip";
import { StatusBadge } from "../ui/StatusBadge";
import { Elapsed, Time } from "../ui/Time";

export function RunHeader({ head, chosen }: { head: RunDetail; chosen: string }) {
  const { run, totals, phases } = head;
  return (
    <header class="run-header">
      <div class="title">
        <StatusBadge status={run.status} />
        <h1>
          <Inert text={run.pipeline} />
        </h1>
        <CopyButton text={run.run_id} what="id of the run" label="Copy id" />
        <a class="button quiet" href={hrefOf(["compare"], { a: run.run_id })}>
          Compare
        </a>
      </div>
      <p class="hint">
        Started <Time at={run.started_at} how="date" /> (<Time at={run.started_at} how="relative" />
        ){run.start_implicit && ", by its earliest call: its own start has not arrived"} ·{" "}
        {run.ended_at === undefined ? "running for" : "took"}{" "}
        <Elapsed from={run.started_at} to={run.ended_at} />
        {run.session_id && (
          <>
            {" "}
            · session <Inert text={run.session_id} />
          </>
        )}
      </p>
      {run.error && (
        <div class="error">
          <LongText text={run.error} />
        </div>
      )}
      {totals && <Totals totals={totals} />}
      {totals?.source === "live" && (
        <p class="hint">Live totals: exact over the calls counted so far.</p>
      )}
      {phases && <PhaseStrip phases={phases} run={run.run_id} chosen={chosen} />}
      {run.attributes && (
        <details>
          <summary>Attributes</summary>
          <JsonTree value={run.attributes as unknown as Json} />
        </details>
      )}
    </header>
  );
}
