/** The list of runs as it grows: the newest page is polled, older ones are added below. */
import type { ListedRun, RunPage } from "../api/shapes";

export interface Newest {
  readonly runs: readonly ListedRun[];
  /** Where the runs older than these go on. */
  readonly next: string | undefined;
  /** How often in a row a poll has found nothing new. */
  readonly unchanged: number;
  /** How many runs the last poll added. */
  readonly arrived: number;
}

/**
 * What is known after another look at the newest page. What is on it replaces what was known, and
 * what was newer than its end and is not on it is gone. When it shares no run with what was known,
 * there is a gap between the two, and the list begins anew.
 */
export function advanced(before: Newest | undefined, page: RunPage): Newest {
  if (before && !page.runs.length && page.next !== undefined) {
    return { ...before, unchanged: before.unchanged + 1, arrived: 0 };
  }
  const fresh = new Set(page.runs.map((run) => run.run_id));
  const overlaps = before?.runs.some((run) => fresh.has(run.run_id));
  if (!before || (page.next !== undefined && !overlaps)) {
    return { runs: page.runs, next: page.next, unchanged: 0, arrived: 0 };
  }
  const oldest = page.runs.at(-1)?.started_at ?? "";
  const kept =
    page.next === undefined
      ? []
      : before.runs.filter((run) => !fresh.has(run.run_id) && run.started_at <= oldest);
  const runs = [...page.runs, ...kept];
  const known = new Set(before.runs.map((run) => run.run_id));
  return {
    runs,
    next: page.next === undefined ? undefined : before.next,
    unchanged: JSON.stringify(runs) === JSON.stringify(before.runs) ? before.unchanged + 1 : 0,
    arrived: page.runs.filter((run) => !known.has(run.run_id)).length,
  };
}

/** Each run once, the newest knowledge of it first. */
export function listed(newest: readonly ListedRun[], older: readonly RunPage[]): ListedRun[] {
  const byId = new Map(newest.map((run) => [run.run_id, run]));
  for (const page of older) {
    for (const run of page.runs) if (!byId.has(run.run_id)) byId.set(run.run_id, run);
  }
  return [...byId.values()];
}

/** Milliseconds until the next poll: three seconds, up to thirty while nothing changes. */
export function pollIn(unchanged: number): number {
  return Math.min(30_000, 3_000 * 1.5 ** unchanged);
}

/** Milliseconds until a run that is not complete yet is read again: a large one costs more. */
export function rereadIn(calls: number): number {
  return Math.min(60_000, 3_000 + calls * 2);
}
