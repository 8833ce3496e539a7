import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Json } from "../api/json";
import type { CallSet, Row } from "../calls/rows";
import { hrefOfRun, type Route } from "../route";
import { bytes, count, counted } from "../text/counts";
import { dollars } from "../text/money";
import { Inert } from "../ui/Inert";
import { Duration, Time } from "../ui/Time";
import { JsonTree } from "./JsonTree";

interface Props {
  row: Row;
  set: CallSet;
  route: Route;
}

/** Everything that is known of a call but its payload. */
export function Facts({ row, set, route }: Props) {
  const { call } = row;
  const children = useMemo(
    () => set.rows.filter((other) => other.parent === call.step_id),
    [set, call.step_id],
  );
  const parent = row.parent === undefined ? undefined : set.byId.get(row.parent);
  return (
    <>
      <dl class="facts">
        <Fact name="Kind">{call.kind}</Fact>
        <Fact name="Phase">
          <Inert text={row.phase} />
        </Fact>
        <Text name="Agent" text={call.agent} />
        <Text name="Model" text={call.model} />
        <Text name="Provider" text={call.provider} />
        <Fact name="Started">
          <Time at={call.started_at} how="date" />
        </Fact>
        <Fact name="Took">
          <Duration ms={call.duration_ms} />
        </Fact>
        <Fact name="Cost">
          {call.cost_usd === undefined ? (
            <span class="unknown">unknown</span>
          ) : (
            <span class="number">{dollars(call.cost_usd)}</span>
          )}
        </Fact>
        {call.cost_computed_usd !== undefined && (
          <Fact name="By list prices">
            <span class="number">{dollars(call.cost_computed_usd)}</span>
          </Fact>
        )}
        <Text name="Price table" text={call.price_table} />
        <Tokens name="Input tokens" n={call.input_tokens} />
        <Tokens name="Output tokens" n={call.output_tokens} />
        <Tokens name="Cached" n={call.cached_tokens} />
        <Tokens name="Cache writes" n={call.cache_write_tokens} />
        <Tokens name="Reasoning" n={call.reasoning_tokens} />
        <Text name="Session" text={call.session_id} />
        {call.payload_bytes !== undefined && (
          <Fact name="Payload">{bytes(call.payload_bytes)}</Fact>
        )}
        {parent && (
          <Fact name="Parent">
            <a href={hrefOfRun(route, parent.call.step_id)}>
              <Inert text={parent.title} />
            </a>
          </Fact>
        )}
      </dl>
      {call.cut && (
        <p class="notice">Shortened here, whole in the call's event: {call.cut.join(", ")}.</p>
      )}
      {children.length > 0 && <Children rows={children} route={route} />}
      {call.attributes && (
        <details>
          <summary>Attributes</summary>
          <JsonTree value={call.attributes as unknown as Json} />
        </details>
      )}
    </>
  );
}

const MOST_CHILDREN = 50;

function Children({ rows, route }: { rows: readonly Row[]; route: Route }) {
  return (
    <details>
      <summary>{counted(rows.length, "call")} below it</summary>
      <ul class="call-list">
        {rows.slice(0, MOST_CHILDREN).map(({ call, title }) => (
          <li key={call.step_id}>
            <a href={hrefOfRun(route, call.step_id)}>
              <Inert text={title} />
            </a>
            <span class="right">
              <Duration ms={call.duration_ms} />
            </span>
          </li>
        ))}
      </ul>
      {rows.length > MOST_CHILDREN && <p class="hint">The tree has all of them.</p>}
    </details>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Text({ name, text }: { name: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <Fact name={name}>
      <Inert text={text} />
    </Fact>
  );
}

function Tokens({ name, n }: { name: string; n: number | undefined }) {
  return n === undefined ? null : (
    <Fact name={name}>
      <span class="number">{count(n)}</span>
    </Fact>
  );
}
