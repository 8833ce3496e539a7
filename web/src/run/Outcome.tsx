/** What a run said: its result and its log. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "preact/hooks";
import { readResult } from "../api/client";
import type { Logs, Result, Run, WholeResult } from "../api/shapes";
import { bytes } from "../text/counts";
import { CopyButton, DownloadButton } from "../ui/Buttons";
import { LongText } from "../ui/Inert";
import { StoredLink } from "../ui/StoredLink";
import { Time } from "../ui/Time";
import { Trouble } from "../ui/Trouble";

export function RunResult({ run, result }: { run: Run; result: Result | undefined }) {
  const [wanted, want] = useState(false);
  const whole = useQuery({
    queryKey: ["result", run.run_id],
    queryFn: ({ signal }) => readResult(run.run_id, signal),
    enabled: wanted,
  });
  if (result?.result === undefined) {
    return <p class="empty">{run.ended_at ? "It gave no result." : "It has not ended yet."}</p>;
  }
  const text = whole.data?.result ?? result.result;
  const cut = result.result_truncated && whole.data?.result === undefined;
  return (
    <>
      <div class="toolbar">
        <span class="hint">{bytes(result.result_bytes)}</span>
        {!cut && <CopyButton text={text} what="result" />}
        {!cut && <DownloadButton text={text} name={`${run.run_id}-result.txt`} type="text/plain" />}
      </div>
      {cut && (
        <p class="notice">
          Cut here: the beginning of {bytes(result.result_bytes)}.{" "}
          {!whole.data && (
            <button type="button" onClick={() => want(true)} disabled={whole.isFetching}>
              {whole.isFetching ? "Reading…" : "Read it whole"}
            </button>
          )}
          {whole.data && <Elsewhere whole={whole.data} />}
        </p>
      )}
      {whole.error && <Trouble error={whole.error} retry={() => whole.refetch()} />}
      <LongText text={text} code key={cut ? "cut" : "whole"} />
    </>
  );
}

function Elsewhere({ whole }: { whole: WholeResult }) {
  if (whole.link) return <StoredLink link={whole.link} what="result" />;
  if (whole.result_state === "missing") return <>Its stored object is gone.</>;
  if (whole.result_state === "corrupt") return <>Its stored object holds other bytes.</>;
  return <>There is none.</>;
}

export function LogLines({ logs }: { logs: Logs | undefined }) {
  if (!logs?.entries.length) return <p class="empty">Nothing was logged.</p>;
  return (
    <>
      {logs.older && <p class="notice">These are the newest lines; there are older ones.</p>}
      <ol class="logs" aria-label="Log lines, oldest first">
        {logs.entries.map((entry) => (
          <li key={entry.log_id}>
            <Time at={entry.at} how="clock" />
            <LongText text={entry.lines.join("\n")} code />
            {entry.truncated && <p class="hint">Cut here: the entry was longer.</p>}
          </li>
        ))}
      </ol>
    </>
  );
}
