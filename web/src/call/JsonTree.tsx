import { isLosslessNumber } from "lossless-json";
import { useState } from "preact/hooks";
import { isObject, type Json } from "../api/json";
import { counted } from "../text/counts";
import { Inert, LongText } from "../ui/Inert";

const OPEN_LEVELS = 2;
const OPEN_MEMBERS = 30;
const AT_ONCE = 100;

/** JSON that unfolds; only what is unfolded is in the document. Numbers as they were written. */
export function JsonTree({ value }: { value: Json }) {
  return (
    <div class="json">
      <Value value={value} level={0} />
    </div>
  );
}

function Value({ value, level }: { value: Json; level: number }) {
  if (Array.isArray(value)) {
    return <Members entries={value.map((item, at) => [String(at), item])} level={level} list />;
  }
  if (isObject(value)) return <Members entries={Object.entries(value)} level={level} />;
  if (typeof value === "string") return <TextValue text={value} />;
  const shown = isLosslessNumber(value) ? value.value : String(value);
  return (
    <span class={value === null ? "null" : typeof value === "boolean" ? "flag" : "number"}>
      {shown}
    </span>
  );
}

function TextValue({ text }: { text: string }) {
  if (text.length < 120 && !text.includes("\n")) {
    return (
      <span class="text">
        "<Inert text={text} />"
      </span>
    );
  }
  return <LongText text={text} most={2_000} />;
}

interface MembersProps {
  entries: [string, Json][];
  level: number;
  list?: boolean;
}

function Members({ entries, level, list = false }: MembersProps) {
  const [open, setOpen] = useState(level < OPEN_LEVELS && entries.length <= OPEN_MEMBERS);
  const [shown, show] = useState(AT_ONCE);
  const [opening, closing] = list ? ["[", "]"] : ["{", "}"];
  if (!entries.length) return <span class="hint">{opening + closing}</span>;
  const size = counted(entries.length, list ? "item" : "member");
  return (
    <span>
      <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span aria-hidden="true">{open ? "▾" : "▸"}</span>
        <span>{open ? opening : `${opening}…${closing}`}</span>
        <span class="hint">{size}</span>
      </button>
      {open && (
        <ul>
          {entries.slice(0, shown).map(([name, value]) => (
            <li key={name}>
              <span class={list ? "hint" : "name"}>
                <Inert text={name} />:{" "}
              </span>
              <Value value={value} level={level + 1} />
            </li>
          ))}
          {entries.length > shown && (
            <li>
              <button type="button" class="quiet" onClick={() => show(shown + AT_ONCE * 10)}>
                Show more ({counted(entries.length - shown, "item")} left)
              </button>
            </li>
          )}
        </ul>
      )}
    </span>
  );
}
