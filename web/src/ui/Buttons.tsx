import { useEffect, useState } from "preact/hooks";
import { announce } from "./announce";

interface CopyProps {
  text: string;
  what: string;
  label?: string;
}

export function CopyButton({ text, what, label = "Copy" }: CopyProps) {
  const [done, setDone] = useState("");
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(""), 2_000);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => {
    const worked = await copied(text);
    setDone(worked ? "Copied" : "Not permitted");
    announce(worked ? `Copied ${what}` : "The browser does not permit copying here");
  };
  return (
    <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${what}`}>
      {done || label}
    </button>
  );
}

/** The clipboard is there only on https and localhost: elsewhere a selection has to do. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const worked = document.execCommand("copy");
    area.remove();
    return worked;
  }
}

interface DownloadProps {
  text: string;
  name: string;
  type: string;
}

export function DownloadButton({ text, name, type }: DownloadProps) {
  const download = () => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name.replace(/[^\w.-]/g, "_");
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <button type="button" class="quiet" onClick={download} aria-label={`Download ${name}`}>
      Download
    </button>
  );
}
