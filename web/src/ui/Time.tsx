import { useEffect, useState } from "preact/hooks";
import { clock, dateTime, duration, epochMs, relative } from "../text/times";

/** In the viewer's zone; the exact value on hover. */
export function Time({ at, how }: { at: string; how: "date" | "clock" | "relative" }) {
  const now = useNow(how === "relative" ? 30_000 : 0);
  const shown = how === "date" ? dateTime(at) : how === "clock" ? clock(at) : relative(at, now);
  return (
    <time dateTime={at} title={how === "date" ? at : `${dateTime(at)} · ${at}`}>
      {shown}
    </time>
  );
}

/** How long a run took, or takes. */
export function Elapsed({ from, to }: { from: string; to: string | undefined }) {
  const now = useNow(to === undefined ? 1_000 : 0);
  const end = to === undefined ? now : epochMs(to);
  const ms = Math.max(0, end - epochMs(from));
  const shown = to === undefined ? Math.floor(ms / 1000) * 1000 : ms;
  return (
    <span class="number" title={`${from} – ${to ?? "now"}`}>
      {duration(shown)}
    </span>
  );
}

export function Duration({ ms }: { ms: number | undefined }) {
  if (ms === undefined) return <span class="unknown">–</span>;
  return (
    <span class="number" title={`${ms} ms`}>
      {duration(ms)}
    </span>
  );
}

/** The time, anew after every so many milliseconds; 0 lets it stand. */
function useNow(every: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
