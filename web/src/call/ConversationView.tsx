import { useState } from "preact/hooks";
import type { Conversation, Message } from "../payload/conversation";
import type { Part } from "../payload/parts";
import { count } from "../text/counts";
import { Inert, LongText } from "../ui/Inert";
import { JsonTree } from "./JsonTree";

interface Props {
  conversation: Conversation;
  kind: string;
}

const AT_ONCE = 50;

/** Messages in order; of a long conversation the last ones at first. */
export function ConversationView({ conversation, kind }: Props) {
  const [shown, show] = useState(AT_ONCE);
  const { messages, rest } = conversation;
  const hidden = Math.max(0, messages.length - shown);
  return (
    <>
      {hidden > 0 && (
        <button type="button" class="more" onClick={() => show(shown + AT_ONCE)}>
          Show earlier messages ({count(hidden)} more)
        </button>
      )}
      <ol class="conversation">
        {messages.slice(hidden).map((message, at) => (
          <li key={hidden + at} class={`message ${classOf(message.role)}`}>
            <MessageView message={message} kind={kind} />
          </li>
        ))}
      </ol>
      {Object.keys(rest).length > 0 && (
        <details>
          <summary>Besides</summary>
          <JsonTree value={rest} />
        </details>
      )}
    </>
  );
}

const ROLES = new Set([
  "system",
  "developer",
  "user",
  "assistant",
  "model",
  "tool",
  "input",
  "output",
]);

function classOf(role: string): string {
  return ROLES.has(role) ? role : "other";
}

function MessageView({ message, kind }: { message: Message; kind: string }) {
  const { role, name, parts } = message;
  const titles: Record<string, string> =
    kind === "tool"
      ? { input: "Arguments", output: "Result" }
      : { input: "Input", output: "Output" };
  return (
    <>
      <h4>
        <Inert text={titles[role] ?? role} />
        {name && (
          <span class="hint">
            {" "}
            <Inert text={name} />
          </span>
        )}
      </h4>
      {!parts.length && <p class="hint">(empty)</p>}
      {parts.map((part, at) => (
        <PartView key={at} part={part} />
      ))}
    </>
  );
}

function PartView({ part }: { part: Part }) {
  switch (part.kind) {
    case "text":
      return <LongText text={part.text} />;
    case "thinking":
      return (
        <details class="thinking">
          <summary>Thinking</summary>
          <LongText text={part.text} />
        </details>
      );
    case "call":
      return (
        <div class="tool">
          <h5>
            Calls <Inert text={part.name} /> <Id id={part.id} />
          </h5>
          <Value value={part.value} />
        </div>
      );
    case "result":
      return (
        <div class={part.failed ? "tool failed" : "tool"}>
          <h5>
            {part.failed ? "Failed result" : "Result"}
            {part.name && " of "}
            <Inert text={part.name} /> <Id id={part.id} />
          </h5>
          <Value value={part.value} />
        </div>
      );
    default:
      return <JsonTree value={part.value} />;
  }
}

function Id({ id }: { id: string }) {
  return id ? (
    <span class="id">
      <Inert text={id} />
    </span>
  ) : null;
}

function Value({ value }: { value: Parameters<typeof JsonTree>[0]["value"] }) {
  if (typeof value === "string") return <LongText text={value} code />;
  return <JsonTree value={value} />;
}
