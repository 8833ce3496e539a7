/** What the timeline draws, in ECharts' terms. */
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import type { EChartsCoreOption } from "echarts/core";
import type { Block, Lanes } from "../calls/lanes";
import type { Colours } from "../charts/colours";
import { echarts } from "../charts/echarts";
import { counted } from "../text/counts";
import { clipped, plain } from "../text/inert";
import { dollars } from "../text/money";
import { duration } from "../text/times";

export interface Layout {
  /** Pixels from the top, for each lane; then that of the end. */
  readonly tops: readonly number[];
  readonly height: number;
}

const TITLE = 22;
const HIGHEST = 18;
const LOWEST = 2;
const MOST = 2_400;

/** Lanes as high as they can be while the whole stays within a canvas that a browser can hold. */
export function layoutOf(lanes: Lanes): Layout {
  const titles = new Set(lanes.bands.map((band) => band.first));
  const room = (MOST - titles.size * TITLE) / Math.max(1, lanes.lanes - titles.size);
  const height = Math.max(LOWEST, Math.min(HIGHEST, Math.floor(room)));
  const tops: number[] = [0];
  for (let lane = 0; lane < lanes.lanes; lane++) {
    tops.push((tops[lane] ?? 0) + (titles.has(lane) ? TITLE : height));
  }
  return { tops, height: tops.at(-1) ?? 0 };
}

export const AXIS = 28;
const MARGIN = 200;

/** The lanes between these pixels, and some above and below. */
export function lanesSeen({ tops }: Layout, top: number, bottom: number) {
  const first = tops.findIndex((y) => y + AXIS > top - MARGIN);
  const last = tops.findIndex((y) => y + AXIS > bottom + MARGIN);
  return { firstLane: Math.max(0, first - 1), lastLane: last < 0 ? tops.length : last };
}

export function optionOf(
  lanes: Lanes,
  layout: Layout,
  ms: number,
  colours: Colours,
): EChartsCoreOption {
  return {
    animation: false,
    grid: { left: 8, right: 16, top: AXIS, bottom: 4 },
    xAxis: {
      type: "value",
      position: "top",
      min: 0,
      max: ms,
      axisLabel: {
        color: colours.muted,
        formatter: duration,
        hideOverlap: true,
        showMaxLabel: false,
      },
      axisLine: { show: false },
      splitLine: { lineStyle: { color: colours.border } },
      splitNumber: 6,
    },
    yAxis: { type: "value", inverse: true, min: 0, max: layout.height, show: false },
    dataZoom: [
      {
        type: "inside",
        filterMode: "none",
        // A page that scrolls must go on scrolling: the wheel zooms with Ctrl alone.
        zoomOnMouseWheel: "ctrl",
        moveOnMouseMove: true,
        preventDefaultMouseMove: false,
        minSpan: 0.01,
      },
    ],
    series: [bandsOf(lanes, layout, colours), { id: "calls", ...CALLS }],
  };
}

function bandsOf(lanes: Lanes, layout: Layout, colours: Colours) {
  const texts = lanes.bands.map(
    (band) => `${plain(clipped(band.phase, 60))} · ${counted(band.calls, "call")}`,
  );
  return {
    id: "bands",
    type: "custom",
    silent: true,
    clip: true,
    data: lanes.bands.map((band) => [0, layout.tops[band.first] ?? 0]),
    renderItem(params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) {
      const area = areaOf(params);
      const y = api.coord([0, api.value(1)])[1] ?? 0;
      return {
        type: "group",
        children: [
          {
            type: "rect",
            shape: { x: area.x, y, width: area.width, height: 1 },
            style: { fill: colours.border },
          },
          {
            type: "text",
            style: {
              text: texts[params.dataIndex],
              x: area.x + 4,
              y: y + 5,
              fill: colours.muted,
              font: "12px system-ui, sans-serif",
            },
          },
        ],
      };
    },
  };
}

const CALLS = { type: "custom", clip: true, encode: { x: [0, 1], y: 2 }, data: [] };

export function callsOf(blocks: readonly Block[], layout: Layout, from: number, colours: Colours) {
  const fills = {
    succeeded: colours.succeeded,
    failed: colours.failed,
    cancelled: colours.cancelled,
  };
  return {
    id: "calls",
    data: blocks.map((block) => [block.start - from, block.end - from, layout.tops[block.lane]]),
    renderItem(params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) {
      const block = blocks[params.dataIndex];
      if (!block) return null;
      const [left = 0, y = 0] = api.coord([api.value(0), api.value(2)]);
      const [right = 0] = api.coord([api.value(1), api.value(2)]);
      const tall = (layout.tops[block.lane + 1] ?? 0) - (layout.tops[block.lane] ?? 0);
      const wide = Math.max(1, right - left - (tall > 6 ? 1 : 0));
      const shape = echarts.graphic.clipRectByRect(
        { x: left, y, width: wide, height: tall > 4 ? tall - 2 : tall - 0.5 },
        areaOf(params),
      );
      if (!shape) return null;
      return {
        type: "rect",
        shape: { ...shape, r: tall > 8 && shape.width > 6 ? 2 : 0 }, // round is slow
        style: { fill: fills[block.status] },
        ...(tall >= HIGHEST && shape.width > 40 && nameOn(block, shape.width, colours)),
      };
    },
  };
}

function nameOn(block: Block, width: number, colours: Colours) {
  const text =
    block.calls > 1 ? counted(block.calls, "call") : plain(clipped(block.first.title, 80));
  return {
    textContent: {
      type: "text",
      style: {
        text,
        width: width - 8,
        overflow: "truncate",
        fill: colours.surface,
        font: "11px system-ui, sans-serif",
      },
    },
    textConfig: { position: "insideLeft", distance: 4 },
  };
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

function areaOf(params: CustomSeriesRenderItemParams): Area {
  return params.coordSys as unknown as Area;
}

/** What the tip says of a block. */
export function linesOn({ first, calls, start, end }: Block): string[] {
  if (calls > 1)
    return [`${counted(calls, "call")} in ${duration(end - start)}`, "Click to zoom in"];
  const { call, title, phase } = first;
  const lines = [
    clipped(title, 80),
    `${call.kind} · ${clipped(phase, 80)}`,
    `${call.status} · ${duration(call.duration_ms)}`,
  ];
  if (call.cost_usd !== undefined) lines.push(dollars(call.cost_usd));
  if (call.error) lines.push(clipped(call.error, 120));
  return lines;
}
