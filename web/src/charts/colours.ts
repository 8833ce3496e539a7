import { useEffect, useState } from "preact/hooks";

/** The design's colours for a canvas, which knows no custom properties. */
export interface Colours {
  text: string;
  muted: string;
  surface: string;
  raised: string;
  border: string;
  succeeded: string;
  failed: string;
  cancelled: string;
  series: string[];
}

const dark = matchMedia("(prefers-color-scheme: dark)");

export function useColours(): Colours {
  const [colours, setColours] = useState(read);
  useEffect(() => {
    const onChange = () => setColours(read());
    dark.addEventListener("change", onChange);
    return () => dark.removeEventListener("change", onChange);
  }, []);
  return colours;
}

function read(): Colours {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: value("text"),
    muted: value("muted"),
    surface: value("surface"),
    raised: value("raised"),
    border: value("border"),
    succeeded: value("bar"),
    failed: value("failed"),
    cancelled: value("cancelled"),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((n) => value(`series-${n}`)),
  };
}
