import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "preact/hooks";
import { type ReadPayload, readPayload } from "../api/client";
import { parseExactly } from "../api/json";
import { conversationOf } from "../payload/conversation";
import { bytes } from "../text/counts";
import { CopyButton, DownloadButton } from "../ui/Buttons";
import { LongText } from "../ui/Inert";
import { StoredLink } from "../ui/StoredLink";
import { Tabs } from "../ui/Tabs";
import { Skeleton, Trouble } from "../ui/Trouble";
import { ConversationView } from "./ConversationView";
import { JsonTree } from "./JsonTree";

interface Props {
  run: string;
  step: string;
  kind: string;
}

export function PayloadView({ run, step, kind }: Props) {
  const payload = useQuery({
    queryKey: ["payload", run, step],
    queryFn: ({ signal }) => readPayload(run, step, signal),
    structuralSharing: false,
    gcTime: 60_000,
    staleTime: 5 * 60_000,
  });
  const error = payload.error ?? payload.failureReason;
  return (
    <section class="payload" aria-label="Payload">
      <h3>Payload</h3>
      {payload.isPending && !error && <Skeleton rows={3} what="payload" />}
      {error && <Trouble error={error} retry={() => payload.refetch()} busy={payload.isFetching} />}
      {payload.data && <Found payload={payload.data} step={step} kind={kind} />}
    </section>
  );
}

const STATES = {
  none: "It was recorded without a payload.",
  missing:
    "Its stored object is gone: deleted, or past its retention. The call itself was counted.",
  corrupt: "The stored object holds other bytes than were recorded, so they are not shown.",
} as const;

interface FoundProps {
  payload: ReadPayload;
  step: string;
  kind: string;
}

function Found({ payload, step, kind }: FoundProps) {
  const { payload_state: state, raw, link } = payload;
  if (state !== "ok") return <p class={`notice ${state}`}>{STATES[state]}</p>;
  if (link) {
    return (
      <p class="notice">
        {bytes(payload.payload_bytes)}. <StoredLink link={link} what="event with the payload" />
      </p>
    );
  }
  if (raw === undefined) return <p class="notice">The answer holds no payload.</p>;
  return <Shown raw={raw} step={step} kind={kind} />;
}

function Shown({ raw, step, kind }: { raw: string; step: string; kind: string }) {
  const value = useMemo(() => parseExactly(raw), [raw]);
  const conversation = useMemo(
    () => (value === undefined ? undefined : conversationOf(value)),
    [value],
  );
  const tabs = {
    ...(conversation && { conversation: "Conversation" }),
    ...(value !== undefined && { json: "JSON" }),
    raw: "Raw",
  };
  const [wanted, want] = useState("conversation");
  const chosen = wanted in tabs ? wanted : (Object.keys(tabs)[0] ?? "raw");
  return (
    <>
      <div class="toolbar">
        <CopyButton text={raw} what="payload" />
        <DownloadButton text={raw} name={`${step}.json`} type="application/json" />
      </div>
      <Tabs label="Views of the payload" tabs={tabs} chosen={chosen} choose={want}>
        {chosen === "conversation" && conversation && (
          <ConversationView conversation={conversation} kind={kind} />
        )}
        {chosen === "json" && value !== undefined && <JsonTree value={value} />}
        {chosen === "raw" && <LongText text={raw} code />}
      </Tabs>
    </>
  );
}
