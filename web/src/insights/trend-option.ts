/** The lines of a chart over time, in ECharts' terms. */
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import type { EChartsCoreOption } from "echarts/core";
import type { Colours } from "../charts/colours";
import { compact, count } from "../text/counts";
import { dollars } from "../text/money";
import { duration, moment } from "../text/times";
import type { Metric, Series, Span } from "./figures";

const FEW = 40;

export function optionOf(
  series: readonly Series[],
  metric: Metric,
  span: Span,
  colours: Colours,
): EChartsCoreOption {
  const by = span.by ?? "day";
  const most = Math.max(
    ...series.flatMap(({ points }) => points.map(([, value]) => value ?? 0)),
    0,
  );
  return {
    animation: false,
    grid: { left: 8, right: 20, top: 16, bottom: 8, containLabel: true },
    xAxis: {
      type: "time",
      min: span.from,
      max: span.to,
      axisLabel: {
        color: colours.muted,
        hideOverlap: true,
        formatter: (ms: number) => moment(ms, by),
      },
      axisLine: { lineStyle: { color: colours.border } },
      axisTick: { show: false },
      splitNumber: 5,
    },
    yAxis: {
      type: "value",
      min: 0,
      boundaryGap: [0, "8%"],
      ...(most === 0 && { max: 1 }),
      minInterval: metric === "calls" || metric === "failed" ? 1 : 0,
      axisLabel: { color: colours.muted, formatter: (value: number) => onAxis(value, metric) },
      splitLine: { lineStyle: { color: colours.border } },
    },
    series: series.map((line, at) => lineOf(line, colours.series[at] ?? colours.muted)),
  };
}

function lineOf({ points }: Series, colour: string) {
  return {
    type: "custom",
    silent: true,
    clip: true,
    data: points,
    encode: { x: 0, y: 1 },
    renderItem(params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) {
      if (params.dataIndex > 0) return null; // the first draws them all
      const dots = points.filter(([, value]) => value).length < FEW;
      const children = unbroken(points).flatMap((part) => {
        const places = part.map((point) => api.coord(point));
        const line = {
          type: "polyline",
          shape: { points: places },
          style: { stroke: colour, lineWidth: 2, fill: "none" },
        };
        if (!dots && places.length > 1) return [line];
        const marks = places.flatMap(([cx, cy], at) =>
          part[at]?.[1]
            ? [{ type: "circle", shape: { cx, cy, r: 3 }, style: { fill: colour } }]
            : [],
        );
        return [line, ...marks];
      });
      return { type: "group", children };
    },
  };
}

/** The line in parts, broken where there is no value. */
export function unbroken(points: Series["points"]): [number, number][][] {
  const parts: [number, number][][] = [];
  let open: [number, number][] | undefined;
  for (const [at, value] of points) {
    if (value === null) {
      open = undefined;
      continue;
    }
    if (!open) {
      open = [];
      parts.push(open);
    }
    open.push([at, value]);
  }
  return parts;
}

/** What the tip says of the interval that begins next to this time. */
export function linesAt(
  series: readonly Series[],
  time: number,
  metric: Metric,
  by: "hour" | "day",
) {
  const points = series[0]?.points ?? [];
  const width = (points[1]?.[0] ?? 0) - (points[0]?.[0] ?? 0) || 1;
  const nearest = Math.round((time - (points[0]?.[0] ?? 0)) / width);
  const index = Math.max(0, Math.min(points.length - 1, nearest));
  const at = points[index]?.[0];
  if (at === undefined) return [];
  const told = series.flatMap(({ name, points: all }) => {
    const value = all[index]?.[1];
    return value ? [`${name}: ${exactly(value, metric)}`] : [];
  });
  return [moment(at, by), ...(told.length ? told : ["nothing"])];
}

function onAxis(value: number, metric: Metric): string {
  if (metric === "p95") return duration(value);
  return metric === "cost" ? `$${compact(value)}` : compact(value);
}

function exactly(value: number, metric: Metric): string {
  if (metric === "p95") return duration(value);
  return metric === "cost" ? dollars(decimal(value)) : count(value);
}

/** Without an exponent. */
function decimal(value: number): string {
  return String(value).includes("e") ? value.toFixed(18).replace(/0+$/, "") : String(value);
}
