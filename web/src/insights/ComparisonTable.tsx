import type { ComponentChildren } from "preact";
import type { Change, Comparison, Phase } from "../api/shapes";
import { hrefOf } from "../route";
import { count, percent } from "../text/counts";
import { Cost } from "../ui/Figures";
import { Inert } from "../ui/Inert";
import { StatusBadge } from "../ui/StatusBadge";
import { Duration, Time } from "../ui/Time";

type Side = Comparison["a"];

export function ComparisonTable({ found }: { found: Comparison }) {
  const { a, b, change } = found;
  return (
    <>
      <div class="columns">
        <Compared name="a" side={a} />
        <Compared name="b" side={b} />
      </div>
      {(a.partial || b.partial) && (
        <p class="notice">
          The phases of {[a.partial && "a", b.partial && "b"].filter(Boolean).join(" and ")} do not
          cover every call yet. The totals do.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable */}
      <section class="scroller" tabIndex={0} aria-label="Comparison by phase">
        <table class="comparison">
          <caption class="unseen">
            Both runs by phase, and the change from a to b in per cent
          </caption>
          <thead>
            <tr>
              <th scope="col">Phase</th>
              {["Calls", "Failed", "Cost", "p50", "p95", "Output tokens"].map((name) => (
                <th key={name} scope="col" class="right">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr class="group">
              <th scope="row">All calls</th>
              <Cells a={figuresOf(a)} b={figuresOf(b)} change={change} />
            </tr>
            {found.phases.map((phase) => (
              <tr key={phase.phase}>
                <th scope="row">
                  <Inert text={phase.phase} />
                  {!phase.a && <span class="hint"> only in b</span>}
                  {!phase.b && <span class="hint"> only in a</span>}
                </th>
                <Cells a={phase.a} b={phase.b} change={phase.change} />
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

function Compared({ name, side }: { name: string; side: Side }) {
  const { run } = side;
  return (
    <section class="card compared">
      <h2>
        Run {name}:{" "}
        <a href={hrefOf(["runs", run.run_id])}>
          <Inert text={run.pipeline} />
        </a>
      </h2>
      <p class="hint">
        <StatusBadge status={run.status} /> <Time at={run.started_at} how="date" />
      </p>
      <p class="id">{run.run_id}</p>
    </section>
  );
}

type Figures = Partial<Phase>;

function figuresOf({ totals }: Side): Figures {
  return {
    ...totals,
    calls: totals.agents_total,
    failed: totals.failed_total,
    cost_usd: totals.cost_usd_total,
    cost_unknown: totals.cost_unknown_total,
  };
}

interface CellsProps {
  a: Figures | undefined;
  b: Figures | undefined;
  change: Change | undefined;
}

function Cells({ a, b, change }: CellsProps) {
  const number = (n: number | undefined) => (n === undefined ? "–" : count(n));
  const cost = (side: Figures | undefined) =>
    side?.cost_usd === undefined ? (
      "–"
    ) : (
      <Cost amount={side.cost_usd} unknown={side.cost_unknown ?? 0} calls={side.calls ?? 0} />
    );
  return (
    <>
      <Pair a={number(a?.calls)} b={number(b?.calls)} change={change?.calls} />
      <Pair a={number(a?.failed)} b={number(b?.failed)} change={change?.failed} bad />
      <Pair a={cost(a)} b={cost(b)} change={change?.cost_usd} bad />
      <Pair
        a={<Duration ms={a?.p50_ms} />}
        b={<Duration ms={b?.p50_ms} />}
        change={change?.p50_ms}
        bad
      />
      <Pair
        a={<Duration ms={a?.p95_ms} />}
        b={<Duration ms={b?.p95_ms} />}
        change={change?.p95_ms}
        bad
      />
      <Pair
        a={number(a?.output_tokens)}
        b={number(b?.output_tokens)}
        change={change?.output_tokens}
      />
    </>
  );
}

interface PairProps {
  a: ComponentChildren;
  b: ComponentChildren;
  change: number | undefined;
  /** Whether more is worse. */
  bad?: boolean;
}

function Pair({ a, b, change, bad = false }: PairProps) {
  const tone = !bad || !change ? "hint" : change > 0 ? "failed" : "succeeded";
  return (
    <td class="right number pair">
      <span>{a}</span>
      <span aria-hidden="true"> → </span>
      <span class="unseen">becomes</span>
      <span>{b}</span>
      <small class={tone}>
        {change === undefined ? "" : change === 0 ? "same" : percent(change)}
      </small>
    </td>
  );
}
