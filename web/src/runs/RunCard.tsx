import type { ListedRun, Preview } from "../api/shapes";
import { hrefOf } from "../route";
import { counted } from "../text/counts";
import { dollars } from "../text/money";
import { Totals } from "../ui/Figures";
import { Inert } from "../ui/Inert";
import { PhaseStrip } from "../ui/PhaseStrip";
import { StatusBadge, StatusIcon } from "../ui/StatusBadge";
import { Duration, Elapsed, Time } from "../ui/Time";

export function RunCard({ run }: { run: ListedRun }) {
  return (
    <article class={`card ${run.status}`}>
      <header>
        <StatusBadge status={run.status} />
        <h2>
          <a href={hrefOf(["runs", run.run_id])}>
            <Inert text={run.pipeline} />
          </a>
        </h2>
        <span class="id">{run.run_id}</span>
        <span class="when">
          <Time at={run.started_at} how="relative" /> ·{" "}
          <Elapsed from={run.started_at} to={run.ended_at} />
        </span>
      </header>
      {run.error && (
        <p class="error">
          <Inert text={run.error} />
        </p>
      )}
      <Totals totals={run.totals} />
      <PhaseStrip phases={run.phases} run={run.run_id} />
      <FirstCalls run={run.run_id} preview={run.preview} />
    </article>
  );
}

/** A bar for each of the first calls, as high as it took long; the calls themselves on request. */
function FirstCalls({ run, preview }: { run: string; preview: Preview }) {
  if (!preview.calls.length) return <p class="hint">No call has been counted yet.</p>;
  const longest = Math.max(...preview.calls.map((call) => call.duration_ms), 1);
  const height = (ms: number) => 20 + (80 * Math.log1p(ms)) / Math.log1p(longest);
  return (
    <details class="first-calls">
      <summary>
        <span>
          {preview.of > preview.calls.length ? preview.label : counted(preview.of, "call")}
        </span>
        <span class="bars" aria-hidden="true">
          {preview.calls.map((call) => (
            <i
              key={call.step_id}
              class={call.status}
              style={{ height: `${height(call.duration_ms)}%` }}
            />
          ))}
        </span>
      </summary>
      <ul class="call-list">
        {preview.calls.map((call) => (
          <li key={call.step_id}>
            <StatusIcon status={call.status} />
            <a href={hrefOf(["runs", run, "calls", call.step_id])}>
              <Inert text={call.name || call.kind} />
            </a>
            {call.status !== "succeeded" && <span class={call.status}>{call.status}</span>}
            <span class="hint">
              {call.kind}
              {call.phase && (
                <>
                  {" · "}
                  <Inert text={call.phase} />
                </>
              )}
            </span>
            <span class="right">
              <Duration ms={call.duration_ms} />
            </span>
            <span class="right number">
              {call.cost_usd === undefined ? "cost unknown" : dollars(call.cost_usd)}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
