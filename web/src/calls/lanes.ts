/** The timeline: calls of a phase in as many lanes as ran at once, and what of it can be seen. */
import type { Row } from "./rows";

export interface Bar {
  readonly row: Row;
  readonly lane: number;
}

export interface Band {
  readonly phase: string;
  readonly calls: number;
  /** The lane of its title; its calls are in the `lanes` lanes below. */
  readonly first: number;
  readonly lanes: number;
}

export interface Lanes {
  /** By lane, in each by start; none overlaps the next. */
  readonly byLane: readonly (readonly Bar[])[];
  readonly bands: readonly Band[];
  readonly lanes: number;
}

/** Phases in order of their first start. */
export function lanesOf(rows: readonly Row[]): Lanes {
  const groups = new Map<string, Row[]>();
  const ordered = [...rows].sort((a, b) => a.start - b.start || b.end - a.end);
  for (const row of ordered) {
    const group = groups.get(row.phase);
    if (group) group.push(row);
    else groups.set(row.phase, [row]);
  }
  const byLane: Bar[][] = [];
  const bands: Band[] = [];
  for (const [phase, group] of groups) {
    const first = byLane.push([]) - 1;
    const ends: number[] = [];
    for (const row of group) {
      const free = ends.findIndex((end) => end <= row.start);
      const lane = free < 0 ? ends.length : free;
      ends[lane] = row.end;
      const at = first + 1 + lane;
      const bars = byLane[at] ?? [];
      bars.push({ row, lane: at });
      byLane[at] = bars;
    }
    bands.push({ phase, calls: group.length, first, lanes: ends.length });
  }
  return { byLane, bands, lanes: byLane.length };
}

export interface Block {
  readonly lane: number;
  readonly start: number;
  readonly end: number;
  readonly calls: number;
  /** The worst of what is in it. */
  readonly status: Row["call"]["status"];
  readonly first: Row;
}

const WORSE = { succeeded: 0, cancelled: 1, failed: 2 } as const;

/** What of the timeline is looked at. */
export interface Window {
  readonly from: number;
  readonly to: number;
  /** How many there are from `from` to `to`. */
  readonly pixels: number;
  readonly firstLane: number;
  readonly lastLane: number;
}

const NARROWEST = 6;

/** What lies in the window. Neighbours that together would be narrower than six pixels are one, so
 * that a lane has few blocks however many calls it has. */
export function blocksIn(lanes: Lanes, { from, to, pixels, firstLane, lastLane }: Window): Block[] {
  const pixel = (to - from) / Math.max(1, pixels);
  const blocks: Block[] = [];
  for (const bars of lanes.byLane.slice(firstLane, lastLane + 1)) {
    let open: Block | undefined;
    for (let at = firstEndingAfter(bars, from); at < bars.length; at++) {
      const { row, lane } = bars[at] as Bar;
      if (row.start > to) break;
      const { status } = row.call;
      if (open && row.start - open.end < pixel && row.end - open.start < pixel * NARROWEST) {
        open = {
          ...open,
          end: Math.max(open.end, row.end),
          calls: open.calls + 1,
          status: WORSE[status] > WORSE[open.status] ? status : open.status,
        };
        blocks[blocks.length - 1] = open;
      } else {
        open = { lane, start: row.start, end: row.end, calls: 1, status, first: row };
        blocks.push(open);
      }
    }
  }
  return blocks;
}

function firstEndingAfter(bars: readonly Bar[], time: number): number {
  let low = 0;
  let high = bars.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((bars[middle] as Bar).row.end < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
