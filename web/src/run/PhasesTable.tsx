import { useMemo } from "preact/hooks";
import type { Phase, RunDetail } from "../api/shapes";
import { largest, type Row } from "../calls/rows";
import { hrefOf } from "../route";
import { count } from "../text/counts";
import { dollars } from "../text/money";
import { Cost } from "../ui/Figures";
import { Inert } from "../ui/Inert";
import { partialNote } from "../ui/PhaseStrip";
import { StatusIcon } from "../ui/StatusBadge";
import { Duration } from "../ui/Time";

interface Props {
  head: RunDetail;
  rows: readonly Row[];
  hrefOfCall: (id: string) => string;
}

export function PhasesTable({ head, rows, hrefOfCall }: Props) {
  const { phases, run } = head;
  const dearest = useMemo(() => largest(rows, 10, (row) => Number(row.call.cost_usd ?? 0)), [rows]);
  const slowest = useMemo(() => largest(rows, 10, (row) => row.call.duration_ms), [rows]);
  return (
    <>
      {phases?.partial && <p class="notice">{partialNote(phases)}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable */}
      <section class="scroller" tabIndex={0} aria-label="Table of phases">
        <table>
          <caption class="unseen">Phases of the run, in order of first start</caption>
          <thead>
            <tr>
              {HEADS.map((name, at) => (
                <th key={name} scope="col" class={at > 0 && at < 11 ? "right" : ""}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {phases?.entries.map((phase) => (
              <PhaseRow key={phase.phase} phase={phase} run={run.run_id} />
            ))}
          </tbody>
        </table>
      </section>
      <div class="columns">
        <Top title="Dearest calls" rows={dearest} hrefOfCall={hrefOfCall} />
        <Top title="Slowest calls" rows={slowest} hrefOfCall={hrefOfCall} />
      </div>
    </>
  );
}

const HEADS = [
  "Phase", "Calls", "Failed", "Cost", "Input", "Output", "Cached", "Wall", "p50", "p95", "Max",
  "Agents", "Models",
]; // biome-ignore format: a list

function PhaseRow({ phase, run }: { phase: Phase; run: string }) {
  const tokens = (n: number | undefined) => (n === undefined ? "–" : count(n));
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf(["runs", run, "phases", phase.phase])} title="Show the calls of this phase">
          <Inert text={phase.phase} />
        </a>
        {phase.rolled_up > 0 && <span class="hint"> {count(phase.rolled_up)} phases together</span>}
      </th>
      <td class="right number">{count(phase.calls)}</td>
      <td class={phase.failed ? "right number failed" : "right number"}>{count(phase.failed)}</td>
      <td class="right">
        <Cost amount={phase.cost_usd} unknown={phase.cost_unknown} calls={phase.calls} />
      </td>
      <td class="right number">{tokens(phase.input_tokens)}</td>
      <td class="right number">{tokens(phase.output_tokens)}</td>
      <td class="right number">{tokens(phase.cached_tokens)}</td>
      {[phase.wall_ms, phase.p50_ms, phase.p95_ms, phase.max_ms].map((ms, at) => (
        <td key={at} class="right">
          <Duration ms={ms} />
        </td>
      ))}
      <td>
        <Names names={phase.agents} />
      </td>
      <td>
        <Names names={phase.models} />
      </td>
    </tr>
  );
}

function Names({ names }: { names: readonly string[] | undefined }) {
  return (
    <>
      {names?.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <Inert text={name} />
        </span>
      ))}
    </>
  );
}

interface TopProps {
  title: string;
  rows: readonly Row[];
  hrefOfCall: (id: string) => string;
}

function Top({ title, rows, hrefOfCall }: TopProps) {
  return (
    <section>
      <h2>{title}</h2>
      {!rows.length && <p class="hint">None.</p>}
      <ol class="call-list">
        {rows.map(({ call, title: name, phase }) => (
          <li key={call.step_id}>
            <StatusIcon status={call.status} />
            <a href={hrefOfCall(call.step_id)}>
              <Inert text={name} />
            </a>
            <span class="hint">
              <Inert text={phase} />
            </span>
            <span class="right">
              <Duration ms={call.duration_ms} />
            </span>
            <span class="right number">
              {call.cost_usd === undefined ? "cost unknown" : dollars(call.cost_usd)}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
