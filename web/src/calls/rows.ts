/** A run's calls as the views take them: with their phase, and times as milliseconds. */
import type { Call } from "../api/shapes";
import { epochMs } from "../text/times";
import { Family, phasesOf } from "./phases";

export interface Row {
  readonly call: Call;
  readonly title: string;
  readonly phase: string;
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  /** The whole step id of the parent, when that call is among the rows. */
  readonly parent: string | undefined;
}

export interface CallSet {
  readonly rows: readonly Row[];
  readonly byId: ReadonlyMap<string, Row>;
  readonly from: number;
  readonly to: number;
}

export function callSet(calls: readonly Call[]): CallSet {
  const family = new Family(calls);
  const phases = phasesOf(calls, family);
  const byId = new Map<string, Row>();
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const call of calls) {
    const start = epochMs(call.started_at);
    const end = Math.max(start, epochMs(call.ended_at));
    from = Math.min(from, start);
    to = Math.max(to, end);
    byId.set(call.step_id, {
      call,
      title: titleOf(call),
      phase: phases.get(call.step_id) ?? "",
      start,
      end,
      parent: family.parentOf(call)?.step_id,
    });
  }
  return { rows: [...byId.values()], byId, from, to };
}

export function titleOf(call: Pick<Call, "name" | "agent" | "model" | "kind">): string {
  return call.name || call.agent || call.model || call.kind;
}

/** The `most` rows with the largest figure, largest first; rows without one are left out. */
export function largest(
  rows: readonly Row[],
  most: number,
  figure: (row: Row) => number | undefined,
): Row[] {
  const top: { row: Row; value: number }[] = [];
  for (const row of rows) {
    const value = figure(row);
    if (!value) continue;
    const last = top[most - 1];
    if (last && value <= last.value) continue;
    const at = top.findIndex((other) => other.value < value);
    top.splice(at < 0 ? top.length : at, 0, { row, value });
    top.length = Math.min(top.length, most);
  }
  return top.map(({ row }) => row);
}
