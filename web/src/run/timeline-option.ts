/** How ECharts shows the timeline: its axis, and by what it is moved. */
import type { EChartsCoreOption } from "echarts/core";
import type { Colours } from "../charts/colours";
import { duration } from "../text/times";
import { AXIS, type Picture } from "./timeline-picture";

/** One datum, all that is seen: an element for each call would take ECharts many frames. Set again,
 * it is drawn again. */
export const CALLS = { id: "calls", data: [[0, 0]] };

export function optionOf(picture: Picture, ms: number, colours: Colours): EChartsCoreOption {
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
    yAxis: { type: "value", inverse: true, min: 0, max: 1, show: false },
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
    series: [{ ...CALLS, type: "custom", silent: true, clip: true, renderItem: picture.draw }],
  };
}
