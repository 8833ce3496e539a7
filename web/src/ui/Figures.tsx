import type { Sums } from "../api/shapes";
import { count } from "../text/counts";
import { dollars, unknownCost } from "../text/money";

/** A cost to the last digit, and for how many calls it is not known. */
export function Cost({ amount, unknown = 0, calls }: CostProps) {
  const missing = unknownCost(unknown);
  if (missing && unknown === calls) return <span class="unknown">{missing}</span>;
  return (
    <span class="cost">
      <span class="number">{dollars(amount)}</span>{" "}
      {missing && <span class="unknown">+ {missing}</span>}
    </span>
  );
}

interface CostProps {
  amount: string;
  unknown?: number;
  /** When no call's cost is known there is no amount to show. */
  calls?: number;
}

/** What a run's calls come to. */
export function Totals({ totals }: { totals: Sums }) {
  return (
    <dl class="totals">
      <Figure name="Calls">{count(totals.agents_total)}</Figure>
      <Figure name="Failed" alarming={totals.failed_total > 0}>
        {count(totals.failed_total)}
      </Figure>
      {totals.cancelled_total > 0 && (
        <Figure name="Cancelled">{count(totals.cancelled_total)}</Figure>
      )}
      <Figure name="Cost">
        <Cost
          amount={totals.cost_usd_total}
          unknown={totals.cost_unknown_total}
          calls={totals.agents_total}
        />
      </Figure>
      <Figure name="Input tokens">{count(totals.input_tokens)}</Figure>
      <Figure name="Output tokens">{count(totals.output_tokens)}</Figure>
      {totals.cached_tokens > 0 && <Figure name="Cached">{count(totals.cached_tokens)}</Figure>}
      {totals.cache_write_tokens > 0 && (
        <Figure name="Cache writes">{count(totals.cache_write_tokens)}</Figure>
      )}
      {totals.reasoning_tokens > 0 && (
        <Figure name="Reasoning">{count(totals.reasoning_tokens)}</Figure>
      )}
    </dl>
  );
}

interface FigureProps {
  name: string;
  alarming?: boolean;
  children: preact.ComponentChildren;
}

export function Figure({ name, alarming = false, children }: FigureProps) {
  return (
    <div class={alarming ? "figure alarming" : "figure"}>
      <dt>{name}</dt>
      <dd class="number">{children}</dd>
    </div>
  );
}
