/** What the timeline draws: the lanes that are scrolled to, in the time that is zoomed to. */
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import { type Block, blocksIn, type Lanes } from "../calls/lanes";
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

/** Lanes as high as they can be while the whole stays a few screens high. */
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

/** Pixels above the lanes, which stay while those are scrolled. */
export const AXIS = 28;

export interface Scene {
  readonly lanes: Lanes;
  readonly layout: Layout;
  /** When the axis starts, and how long it is. */
  readonly from: number;
  readonly ms: number;
  readonly colours: Colours;
  /** Pixels of the lanes that are scrolled past now. */
  readonly scrolled: () => number;
}

interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Box extends Area {
  readonly block: Block;
  readonly r: number;
}

export interface Picture {
  draw(params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI): object;
  /** The block at a place of what was drawn last. */
  blockAt(x: number, y: number): Block | undefined;
}

export function pictureOf(scene: Scene): Picture {
  const { colours } = scene;
  let boxes: Box[] = [];
  return {
    draw(params, api) {
      const area = params.coordSys as unknown as Area;
      boxes = boxesIn(scene, area, api);
      const named = boxes.filter((box) => heightOf(box.block, scene) >= HIGHEST && box.width > 40);
      const fills = STATUSES.map((status) => ({
        type: "boxes",
        shape: { boxes: boxes.filter(({ block }) => block.status === status) },
        style: { fill: colours[status] },
      }));
      return {
        type: "group",
        children: [...fills, ...titlesIn(scene, area), ...named.map((box) => nameOn(box, colours))],
      };
    },
    blockAt(x, y) {
      if (y < AXIS) return undefined;
      return boxes.find(
        (box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height,
      )?.block;
    },
  };
}

const STATUSES = ["succeeded", "cancelled", "failed"] as const;

function boxesIn(scene: Scene, area: Area, api: CustomSeriesRenderItemAPI): Box[] {
  const { lanes, layout, from, ms } = scene;
  const [left = 0] = api.coord([0, 0]);
  const [right = 0] = api.coord([ms, 0]);
  const pixels = (right - left) / ms;
  const timeAt = (x: number) => from + (x - left) / pixels;
  const end = area.x + area.width;
  const window = { from: timeAt(area.x), to: timeAt(end), pixels: area.width };
  const top = scene.scrolled();
  const seen = lanesIn(layout, top, top + area.height);
  return blocksIn(lanes, { ...window, ...seen }).map((block) => {
    const x = Math.max(area.x, left + (block.start - from) * pixels);
    const tall = heightOf(block, scene);
    const until = Math.min(end, left + (block.end - from) * pixels);
    const width = Math.max(1, until - x - (tall > 6 ? 1 : 0));
    return {
      block,
      x,
      y: area.y + (layout.tops[block.lane] ?? 0) - top,
      width,
      height: tall > 4 ? tall - 2 : tall - 0.5,
      r: tall > 8 && width > 6 ? 2 : 0, // round is slow
    };
  });
}

function heightOf({ lane }: Block, { layout }: Scene): number {
  return (layout.tops[lane + 1] ?? 0) - (layout.tops[lane] ?? 0);
}

/** The lanes between these pixels. */
function lanesIn({ tops }: Layout, top: number, bottom: number) {
  const second = tops.findIndex((y) => y > top);
  const last = tops.findIndex((y) => y >= bottom);
  return { firstLane: Math.max(0, second - 1), lastLane: last < 0 ? tops.length : last };
}

/** Boxes of one colour, as one path: as many elements would take longer than a frame. */
const Boxes = echarts.graphic.extendShape({
  shape: { boxes: [] as readonly Box[] },
  buildPath(path, shape) {
    for (const box of (shape as { boxes: readonly Box[] }).boxes) {
      ONE.buildPath(path as CanvasRenderingContext2D, box);
    }
  },
});
const ONE = new echarts.graphic.Rect();
echarts.graphic.registerShape("boxes", Boxes);

function titlesIn({ lanes, layout, colours, scrolled }: Scene, area: Area) {
  return lanes.bands.flatMap((band) => {
    const y = area.y + (layout.tops[band.first] ?? 0) - scrolled();
    if (y + TITLE < area.y || y > area.y + area.height) return [];
    const text = `${plain(clipped(band.phase, 60))} · ${counted(band.calls, "call")}`;
    const font = "12px system-ui, sans-serif";
    return [
      {
        type: "rect",
        shape: { x: area.x, y, width: area.width, height: 1 },
        style: { fill: colours.border },
      },
      { type: "text", style: { text, x: area.x + 4, y: y + 5, fill: colours.muted, font } },
    ];
  });
}

function nameOn({ block, x, y, width, height }: Box, colours: Colours) {
  const text =
    block.calls > 1 ? counted(block.calls, "call") : plain(clipped(block.first.title, 80));
  return {
    type: "text",
    style: {
      text,
      x: x + 4,
      y: y + height / 2,
      verticalAlign: "middle",
      width: width - 8,
      overflow: "truncate",
      fill: colours.surface,
      font: "11px system-ui, sans-serif",
    },
  };
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
