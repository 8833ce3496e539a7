import { go, hrefOf, type Route } from "../route";
import { fromField, toField } from "../text/times";

interface Props {
  query: Route["query"];
  pipelines: readonly string[];
}

const STATUSES = ["running", "succeeded", "failed", "cancelled", "stale"];

/** What is chosen here stands in the address, so that it can be passed on. */
export function Filters({ query, pipelines }: Props) {
  const change = (name: string, value: string | undefined) => {
    go(hrefOf(["runs"], { ...query, [name]: value }), "replace");
  };
  const onSubmit = (event: Event) => event.preventDefault();
  return (
    <form class="filters" aria-label="Filter runs" onSubmit={onSubmit}>
      <label>
        Status
        <select
          value={query.status ?? ""}
          onChange={(event) => change("status", event.currentTarget.value)}
        >
          <option value="">any</option>
          {STATUSES.map((status) => (
            <option key={status}>{status}</option>
          ))}
        </select>
      </label>
      <label>
        Pipeline
        <input
          list="pipelines"
          value={query.pipeline ?? ""}
          placeholder="any"
          onChange={(event) => change("pipeline", event.currentTarget.value.trim())}
        />
        <datalist id="pipelines">
          {pipelines.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      <Moment name="from" label="Started from" query={query} change={change} />
      <Moment name="to" label="until" query={query} change={change} />
      {Object.keys(query).length > 0 && (
        <a class="button quiet" href={hrefOf(["runs"])}>
          Clear
        </a>
      )}
    </form>
  );
}

interface MomentProps {
  name: string;
  label: string;
  query: Route["query"];
  change: (name: string, value: string | undefined) => void;
}

export function Moment({ name, label, query, change }: MomentProps) {
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        value={toField(query[name])}
        onChange={(event) => change(name, fromField(event.currentTarget.value))}
      />
    </label>
  );
}
