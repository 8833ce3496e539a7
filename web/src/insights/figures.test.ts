import { expect, test } from "vitest";
import type { Insights, Interval } from "../api/shapes";
import { allSeries, filterOf, seriesOf, spanOf } from "./figures";
import { linesAt, unbroken } from "./trend-option";

const NOW = Date.parse("2026-11-30T12:00:00Z");

function interval(from: string, calls: number, p95_ms?: number): Interval {
  return { from, calls, failed: 0, cost_usd: "0.000009", ...(p95_ms && { p95_ms }) } as Interval;
}

test("a range is as long as its name, and by hours or days", () => {
  expect(spanOf({ range: "24h" }, NOW)).toMatchObject({ from: NOW - 86_400_000, by: "hour" });
  expect(spanOf({}, NOW).by).toBe("day");
  expect(spanOf({ range: "custom", from: "2020-01-01T00:00:00Z" }, NOW).by).toBeUndefined();
  expect(filterOf(spanOf({ range: "30d" }, NOW), "p")).toEqual({
    from: "2026-10-31T12:00:00.000Z",
    to: "2026-11-30T12:00:00.000Z",
    by: "day",
    pipeline: "p",
  });
});

const SPAN = { from: Date.parse("2026-11-28T06:00:00Z"), to: NOW, by: "day" } as const;
const TIMES = [
  interval("2026-11-28T00:00:00.000000000Z", 3, 7),
  interval("2026-11-30T00:00:00.000000000Z", 5, 9),
];

test("times without a run count as nothing, and have no percentile", () => {
  expect(seriesOf("p", TIMES, "calls", SPAN).points.map(([, value]) => value)).toEqual([3, 0, 5]);
  const slow = seriesOf("p", TIMES, "p95", SPAN).points;
  expect(slow.map(([, value]) => value)).toEqual([7, null, 9]);
  expect(unbroken(slow).map((part) => part.length)).toEqual([1, 1]);
});

test("a chosen pipeline is drawn by phase", () => {
  const phases = [{ phase: "plan", calls: 3, times: TIMES }];
  const insights = { pipelines: [{ pipeline: "p", calls: 3, times: TIMES, phases }] };
  const names = (chosen: boolean) =>
    allSeries(insights as unknown as Insights, chosen, "calls", SPAN).map((one) => one.name);
  expect(names(false)).toEqual(["p"]);
  expect(names(true)).toEqual(["plan"]);
});

test("the tip tells money without an exponent", () => {
  const series = [seriesOf("p", [interval("2026-11-30T00:00:00.000000000Z", 1)], "cost", SPAN)];
  const small = series.map((one) => ({
    ...one,
    points: one.points.map(([at, value]): [number, number | null] => [at, value && 9e-7]),
  }));
  expect(linesAt(small, NOW, "cost", "day").at(-1)).toBe("p: $0.0000009");
});
