import type { ElementEvent } from "echarts";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lanesOf } from "../calls/lanes";
import type { CallSet, Row } from "../calls/rows";
import { useColours } from "../charts/colours";
import { Tip, type TipState } from "../charts/Tip";
import { useChart } from "../charts/useChart";
import { counted } from "../text/counts";
import { duration } from "../text/times";
import { CALLS, optionOf } from "./timeline-option";
import { AXIS, layoutOf, linesOn, pictureOf } from "./timeline-picture";

interface Props {
  rows: readonly Row[];
  set: CallSet;
  open: (id: string) => void;
}

interface Zoom {
  start: number;
  end: number;
}

/** ECharts stops every wheel, also those that it does nothing with. */
const keepScrolling = (event: WheelEvent) => {
  if (!event.ctrlKey) event.stopPropagation();
};

/** A canvas cannot be read aloud: the same calls are in the tree and in the table. */
export default function Timeline({ rows, set, open }: Props) {
  const [element, chart] = useChart();
  const colours = useColours();
  const zoom = useRef<Zoom>({ start: 0, end: 100 });
  const lanes = useMemo(() => lanesOf(rows), [rows]);
  const layout = useMemo(() => layoutOf(lanes), [lanes]);
  const ms = Math.max(set.to - set.from, 1e-3);
  const [tip, setTip] = useState<TipState | null>(null);
  const opening = useRef(open);
  opening.current = open;

  useEffect(() => {
    const scroller = chart?.getDom().closest(".scroller");
    if (!chart || !scroller || !rows.length) return;
    const scrolled = () => scroller.scrollTop;
    const picture = pictureOf({ lanes, layout, from: set.from, ms, colours, scrolled });
    chart.resize();
    chart.setOption(optionOf(picture, ms, colours), { replaceMerge: ["series"] });
    chart.dispatchAction({ type: "dataZoom", ...zoom.current });
    const onZoom = () => {
      setTip(null);
      const [shown] = (chart.getOption() as { dataZoom: Zoom[] }).dataZoom;
      if (shown) zoom.current = { start: shown.start, end: shown.end };
    };
    const onScroll = () => {
      setTip(null);
      chart.setOption({ series: [CALLS] }, { lazyUpdate: true });
    };
    const canvas = chart.getZr();
    const onMove = ({ offsetX: x, offsetY: y, event }: ElementEvent) => {
      const dragged = "buttons" in event && event.buttons > 0;
      const block = dragged ? undefined : picture.blockAt(x, y);
      canvas.setCursorStyle(block ? "pointer" : "default");
      setTip(block ? { lines: linesOn(block), x, y, width: chart.getWidth() } : null);
    };
    const onOut = () => setTip(null);
    const onClick = ({ offsetX: x, offsetY: y }: ElementEvent) => {
      const block = picture.blockAt(x, y);
      if (!block) return;
      if (block.calls === 1) return opening.current(block.first.call.step_id);
      const margin = (block.end - block.start) * 0.1;
      const part = (time: number) => ((time - set.from) / ms) * 100;
      const start = Math.max(0, part(block.start - margin));
      const end = Math.min(100, part(block.end + margin));
      chart.dispatchAction({ type: "dataZoom", start, end });
    };
    chart.on("datazoom", onZoom);
    canvas.on("mousemove", onMove);
    canvas.on("globalout", onOut);
    canvas.on("click", onClick);
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      scroller.removeEventListener("scroll", onScroll);
      chart.off("datazoom", onZoom);
      canvas.off("mousemove", onMove);
      canvas.off("globalout", onOut);
      canvas.off("click", onClick);
    };
  }, [chart, lanes, layout, set, ms, colours, rows]);

  const change = (scale: number, shift: number) => {
    const { start, end } = zoom.current;
    const width = Math.min(100, (end - start) * scale);
    const middle = (start + end) / 2 + shift * width;
    const from = Math.max(0, Math.min(100 - width, middle - width / 2));
    chart?.dispatchAction({ type: "dataZoom", start: from, end: from + width });
  };
  const label = `Timeline of ${counted(rows.length, "call")} over ${duration(ms)}, in ${counted(
    lanes.bands.length,
    "phase",
  )}. The tree and the table have the same calls.`;
  return (
    <>
      <div class="toolbar">
        <Button name="Zoom in" sign="+" act={() => change(0.5, 0)} />
        <Button name="Zoom out" sign="−" act={() => change(2, 0)} />
        <Button name="Earlier" sign="←" act={() => change(1, -0.5)} />
        <Button name="Later" sign="→" act={() => change(1, 0.5)} />
        <Button name="Whole run" sign="Whole run" act={() => change(1e9, 0)} />
        <span class="hint wide">
          Drag to move, Ctrl and wheel to zoom, click a call to open it.
        </span>
      </div>
      {!rows.length && <p class="empty">No call to show.</p>}
      <div class="scroller timeline" hidden={!rows.length} onWheelCapture={keepScrolling}>
        <div style={{ height: layout.height + AXIS + 4 }}>
          <div class="in-view">
            <div ref={element} role="img" aria-label={label} />
            <Tip tip={tip} />
          </div>
        </div>
      </div>
    </>
  );
}

function Button({ name, sign, act }: { name: string; sign: string; act: () => void }) {
  return (
    <button type="button" class="quiet" aria-label={name} title={name} onClick={act}>
      {sign}
    </button>
  );
}
