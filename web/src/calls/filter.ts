/** Which calls are wanted; it stands in the address, so that a view can be passed on. */

import { OTHER_PHASES } from "./phases";
import type { Row } from "./rows";

export interface CallFilter {
  text: string;
  status: string;
  kind: string;
  phase: string;
}

export function isFiltering(filter: CallFilter): boolean {
  return Boolean(filter.text || filter.status || filter.kind || filter.phase);
}

/** `named` are the phases that have an entry of their own: all others are "(other phases)". */
export function filtered(
  rows: readonly Row[],
  filter: CallFilter,
  named: ReadonlySet<string>,
): readonly Row[] {
  if (!isFiltering(filter)) return rows;
  const text = filter.text.toLowerCase();
  return rows.filter(
    (row) =>
      (!filter.status || row.call.status === filter.status) &&
      (!filter.kind || row.call.kind === filter.kind) &&
      (!filter.phase || isIn(row.phase, filter.phase, named)) &&
      (!text || says(row, text)),
  );
}

function isIn(phase: string, wanted: string, named: ReadonlySet<string>): boolean {
  return phase === wanted || (wanted === OTHER_PHASES && !named.has(phase));
}

function says(row: Row, text: string): boolean {
  const { name, agent, model, error, step_id } = row.call;
  return [name, agent, model, error, step_id].some((field) => field?.toLowerCase().includes(text));
}
