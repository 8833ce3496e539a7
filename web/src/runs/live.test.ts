import { expect, test } from "vitest";
import type { ListedRun, RunPage } from "../api/shapes";
import { advanced, listed, pollIn, rereadIn } from "./live";

function run(n: number, status: ListedRun["status"] = "succeeded"): ListedRun {
  return { run_id: `r${n}`, started_at: `2026-11-30T00:00:0${n}`, status } as ListedRun;
}

function page(next: string | undefined, ...runs: ListedRun[]): RunPage {
  return next === undefined ? { runs } : { runs, next };
}

const ids = (runs: readonly ListedRun[]) => runs.map((it) => it.run_id).join();

test("new runs come on top, and what fell off the page stays", () => {
  const first = advanced(undefined, page("c2", run(3), run(2)));
  const second = advanced(first, page("c3", run(4), run(3, "failed")));
  expect(ids(second.runs)).toBe("r4,r3,r2");
  expect(second.runs[1]?.status).toBe("failed");
  expect(second).toMatchObject({ next: "c2", arrived: 1, unchanged: 0 });
});

test("a run that is gone from the page is gone", () => {
  const first = advanced(undefined, page("c", run(5), run(4), run(3)));
  expect(ids(advanced(first, page("c", run(5), run(3))).runs)).toBe("r5,r3");
  expect(ids(advanced(first, page(undefined, run(5))).runs)).toBe("r5");
});

test("with a gap the list begins anew", () => {
  const first = advanced(undefined, page("c1", run(2), run(1)));
  const second = advanced(first, page("c7", run(8), run(7)));
  expect(ids(second.runs)).toBe("r8,r7");
  expect(second.next).toBe("c7");
});

test("an empty page that goes on takes nothing away", () => {
  const first = advanced(undefined, page("c1", run(2)));
  expect(ids(advanced(first, page("c9")).runs)).toBe("r2");
});

test("polls grow rarer while nothing changes", () => {
  let newest = advanced(undefined, page(undefined, run(1, "running")));
  const waits = [];
  for (let poll = 0; poll < 8; poll++) {
    waits.push(pollIn(newest.unchanged));
    newest = advanced(newest, page(undefined, run(1, "running")));
  }
  expect(waits.slice(0, 3)).toEqual([3_000, 4_500, 6_750]);
  expect(waits.at(-1)).toBe(30_000);
  expect(pollIn(advanced(newest, page(undefined, run(1))).unchanged)).toBe(3_000);
  expect(rereadIn(100)).toBeLessThan(4_000);
  expect(rereadIn(33_000)).toBe(60_000);
});

test("each run is listed once, as it was seen last", () => {
  const newest = [run(3, "failed"), run(2)];
  expect(ids(listed(newest, [page("c", run(3), run(1)), page(undefined, run(1), run(0))]))).toBe(
    "r3,r2,r1,r0",
  );
  expect(listed(newest, [page(undefined, run(3))])[0]?.status).toBe("failed");
});
