import type { ECharts } from "echarts/core";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { echarts } from "./echarts";

/** A chart as large as its element, which is there from the second rendering on. */
export function useChart(): [RefObject<HTMLDivElement | null>, ECharts | null] {
  const element = useRef<HTMLDivElement>(null);
  const [chart, setChart] = useState<ECharts | null>(null);
  useEffect(() => {
    if (!element.current) return;
    const made = echarts.init(element.current, null, { renderer: "canvas" });
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(element.current);
    setChart(made);
    return () => {
      observer.disconnect();
      made.dispose();
    };
  }, []);
  return [element, chart];
}
