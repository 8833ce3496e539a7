import { useEffect, useState } from "preact/hooks";
import { useColours } from "../charts/colours";
import { Tip, type TipState } from "../charts/Tip";
import { useChart } from "../charts/useChart";
import { Inert } from "../ui/Inert";
import { METRICS, type Metric, type Series, type Span } from "./figures";
import { linesAt, optionOf } from "./trend-option";

interface Props {
  series: readonly Series[];
  metric: Metric;
  span: Span;
}

/** The sums of the chart are in the table below it. */
export default function TrendChart({ series, metric, span }: Props) {
  const [element, chart] = useChart();
  const [tip, setTip] = useState<TipState | null>(null);
  const colours = useColours();
  const by = span.by ?? "day";
  useEffect(() => {
    if (!chart) return;
    chart.setOption(optionOf(series, metric, span, colours), { notMerge: true });
    const canvas = chart.getZr();
    const onMove = ({ offsetX: x, offsetY: y }: { offsetX: number; offsetY: number }) => {
      const [time = 0] = chart.convertFromPixel("grid", [x, y]) as number[];
      setTip({ lines: linesAt(series, time, metric, by), x, y, width: chart.getWidth() });
    };
    const onOut = () => setTip(null);
    canvas.on("mousemove", onMove);
    canvas.on("globalout", onOut);
    return () => {
      canvas.off("mousemove", onMove);
      canvas.off("globalout", onOut);
    };
  }, [chart, series, metric, span, colours, by]);
  return (
    <figure class="trend">
      <div class="canvas">
        <div ref={element} role="img" aria-label={`${METRICS[metric]} by ${by}`} />
        <Tip tip={tip} />
      </div>
      <ul class="legend">
        {series.map(({ name }, at) => (
          <li key={name}>
            <i style={{ background: colours.series[at % colours.series.length] }} />
            <Inert text={name} />
          </li>
        ))}
      </ul>
    </figure>
  );
}
