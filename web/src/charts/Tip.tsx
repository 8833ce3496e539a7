import { plain } from "../text/inert";

export interface TipState {
  lines: readonly string[];
  /** Pixels from the left and the top of the chart. */
  x: number;
  y: number;
  /** Of the chart, so that the tip stays inside. */
  width: number;
}

/** What the pointer is at. For the eye alone: the same is in the tables. */
export function Tip({ tip }: { tip: TipState | null }) {
  if (!tip?.lines.length) return null;
  const side = tip.x > tip.width / 2 ? { right: tip.width - tip.x + 12 } : { left: tip.x + 12 };
  return (
    <div class="tip" aria-hidden="true" style={{ top: tip.y + 14, ...side }}>
      {tip.lines.map((line, at) => (
        <div key={at} dir="auto">
          {plain(line)}
        </div>
      ))}
    </div>
  );
}
