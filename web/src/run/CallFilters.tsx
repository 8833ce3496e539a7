import { useEffect, useMemo, useState } from "preact/hooks";
import { type CallFilter, isFiltering } from "../calls/filter";
import type { CallSet, Row } from "../calls/rows";
import { count, counted } from "../text/counts";
import { dollars, sumOf } from "../text/money";
import { Inert } from "../ui/Inert";

interface Props {
  filter: CallFilter;
  set: CallSet;
  shown: readonly Row[];
  change: (name: string, value: string) => void;
  allHref: string;
}

const STATUSES = ["succeeded", "failed", "cancelled"];

export function CallFilters({ filter, set, shown, change, allHref }: Props) {
  const kinds = useMemo(() => [...new Set(set.rows.map((row) => row.call.kind))].sort(), [set]);
  const filtering = isFiltering(filter);
  const cost = useMemo(
    () => (filtering ? sumOf(shown.map((row) => row.call.cost_usd ?? "0")) : ""),
    [filtering, shown],
  );
  return (
    <form class="filters" aria-label="Filter calls" onSubmit={(event) => event.preventDefault()}>
      <TextField given={filter.text} change={(text) => change("text", text)} />
      <Choice
        name="Status"
        options={STATUSES}
        given={filter.status}
        change={(it) => change("status", it)}
      />
      <Choice name="Kind" options={kinds} given={filter.kind} change={(it) => change("kind", it)} />
      {filter.phase && (
        <span class="chip">
          Phase <Inert text={filter.phase} />
        </span>
      )}
      {filtering && (
        <>
          <output class="number">
            {count(shown.length)} of {counted(set.rows.length, "call")} · {dollars(cost)}
          </output>
          <a class="button quiet" href={allHref}>
            Show all
          </a>
        </>
      )}
    </form>
  );
}

/** What is typed counts a moment later: 33,000 calls are not searched for every letter. */
function TextField({ given, change }: { given: string; change: (text: string) => void }) {
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  useEffect(() => {
    if (text === given) return;
    const timer = setTimeout(() => change(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>
      Search
      <input
        type="search"
        value={text}
        placeholder="name, agent, model, error, id"
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}

interface ChoiceProps {
  name: string;
  options: readonly string[];
  given: string;
  change: (value: string) => void;
}

function Choice({ name, options, given, change }: ChoiceProps) {
  return (
    <label>
      {name}
      <select value={given} onChange={(event) => change(event.currentTarget.value)}>
        <option value="">any</option>
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}
