/** What of many runs is drawn over time, and how a range of time is asked for. */
import type { InsightsFilter } from "../api/client";
import type { Insights, Interval } from "../api/shapes";
import type { Route } from "../route";

export type Metric = "cost" | "calls" | "failed" | "p95";
export type By = "hour" | "day";

export const METRICS: Record<Metric, string> = {
  cost: "Cost",
  calls: "Calls",
  failed: "Failed calls",
  p95: "p95",
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MOST_INTERVALS = 400;

export const RANGES: Record<string, { name: string; ms: number }> = {
  "24h": { name: "24 hours", ms: DAY_MS },
  "7d": { name: "7 days", ms: 7 * DAY_MS },
  "30d": { name: "30 days", ms: 30 * DAY_MS },
};

export interface Span {
  from: number;
  to: number;
  /** Undefined when it is too long to be shown over time. */
  by: By | undefined;
}

/** The range that an address asks for; `custom` ones say `from` and `to`. */
export function spanOf(query: Route["query"], now: number): Span {
  const range = RANGES[query.range ?? "7d"];
  const to = (!range && Date.parse(query.to ?? "")) || now;
  const from = range ? to - range.ms : Date.parse(query.from ?? "") || to - DAY_MS;
  const by = to - from <= 3 * DAY_MS ? "hour" : "day";
  const intervals = (to - from) / (by === "hour" ? HOUR_MS : DAY_MS);
  return { from, to, by: intervals < MOST_INTERVALS ? by : undefined };
}

export function filterOf(span: Span, pipeline: string | undefined): InsightsFilter {
  return {
    from: new Date(span.from).toISOString(),
    to: new Date(span.to).toISOString(),
    ...(span.by && { by: span.by }),
    ...(pipeline && { pipeline }),
  };
}

export interface Series {
  name: string;
  points: [number, number | null][];
}

/** Intervals without a run count as zero; they have no percentile. */
export function seriesOf(
  name: string,
  times: readonly Interval[],
  metric: Metric,
  span: Span,
): Series {
  const width = span.by === "hour" ? HOUR_MS : DAY_MS;
  const byStart = new Map(times.map((time) => [Date.parse(time.from), time]));
  const points: Series["points"] = [];
  for (let at = Math.floor(span.from / width) * width; at < span.to; at += width) {
    const interval = byStart.get(at);
    const nothing = metric === "p95" ? null : 0;
    points.push([at, interval ? (figureOf(interval, metric) ?? null) : nothing]);
  }
  return { name, points };
}

/** Charts alone take money as a number. */
function figureOf(interval: Interval, metric: Metric): number | undefined {
  switch (metric) {
    case "cost":
      return Number(interval.cost_usd);
    case "calls":
      return interval.calls;
    case "failed":
      return interval.failed;
    case "p95":
      return interval.p95_ms;
  }
}

const MOST_SERIES = 8;

/** A line for each pipeline; of a single chosen one, for each of its phases. */
export function allSeries(
  insights: Insights,
  chosen: boolean,
  metric: Metric,
  span: Span,
): Series[] {
  const [only] = insights.pipelines;
  const groups =
    chosen && only
      ? only.phases.map((phase) => ({ name: phase.phase, ...phase }))
      : insights.pipelines.map((pipeline) => ({ name: pipeline.pipeline, ...pipeline }));
  return groups
    .filter((group) => group.times?.length)
    .sort((a, b) => b.calls - a.calls)
    .slice(0, MOST_SERIES)
    .map((group) => seriesOf(group.name, group.times ?? [], metric, span));
}
