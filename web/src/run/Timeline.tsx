import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Block, blocksIn, lanesOf } from "../calls/lanes";
import type { CallSet, Row } from "../calls/rows";
import { useColours } from "../charts/colours";
import { Tip, type TipState } from "../charts/Tip";
import { useChart } from "../charts/useChart";
import { counted } from "../text/counts";
import { duration } from "../text/times";
import { AXIS, callsOf, lanesSeen, layoutOf, linesOn, optionOf } from "./timeline-option";

interface Props {
  rows: readonly Row[];
  set: CallSet;
  open: (id: string) => void;
}

interface Zoom {
  start: number;
  end: number;
}

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
    if (!chart || !rows.length) return;
    const at = (part: number) => set.from + (ms * part) / 100;
    const scrolled = chart.getDom().parentElement;
    let blocks: Block[] = [];
    const draw = () => {
      const top = scrolled?.scrollTop ?? 0;
      const seen = lanesSeen(layout, top, top + (scrolled?.clientHeight ?? layout.height));
      const [from, to] = [at(zoom.current.start), at(zoom.current.end)];
      blocks = blocksIn(lanes, { from, to, pixels: chart.getWidth(), ...seen });
      chart.setOption(
        { series: [callsOf(blocks, layout, set.from, colours)] },
        { lazyUpdate: true },
      );
    };
    chart.resize();
    chart.setOption(optionOf(lanes, layout, ms, colours), { replaceMerge: ["series"] });
    chart.dispatchAction({ type: "dataZoom", ...zoom.current });
    draw();
    chart.on("datazoom", () => {
      const [shown] = (chart.getOption() as { dataZoom: Zoom[] }).dataZoom;
      if (shown) zoom.current = { start: shown.start, end: shown.end };
      draw();
    });
    chart.on("mousemove", ({ dataIndex, event }) => {
      const block = blocks[dataIndex];
      const { offsetX: x = 0, offsetY: y = 0 } = event ?? {};
      setTip(block ? { lines: linesOn(block), x, y, width: chart.getWidth() } : null);
    });
    chart.on("mouseout", () => setTip(null));
    chart.on("globalout", () => setTip(null));
    chart.on("click", ({ dataIndex }) => {
      const block = blocks[dataIndex];
      if (!block) return;
      if (block.calls === 1) return opening.current(block.first.call.step_id);
      const margin = (block.end - block.start) * 0.1;
      const part = (time: number) => ((time - set.from) / ms) * 100;
      const start = Math.max(0, part(block.start - margin));
      const end = Math.min(100, part(block.end + margin));
      chart.dispatchAction({ type: "dataZoom", start, end });
    });
    scrolled?.addEventListener("scroll", draw, { passive: true });
    return () => {
      scrolled?.removeEventListener("scroll", draw);
      for (const name of ["datazoom", "click", "mousemove", "mouseout", "globalout"])
        chart.off(name);
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
      <div class="scroller timeline" hidden={!rows.length}>
        <div
          ref={element}
          role="img"
          aria-label={label}
          style={{ height: layout.height + AXIS + 4 }}
        />
        <Tip tip={tip} />
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
