import {
  createColumnHelper,
  createSortedRowModel,
  rowSortingFeature,
  sortFn_basic,
  sortFn_text,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "preact/hooks";
import type { Row } from "../calls/rows";
import { count } from "../text/counts";
import { compareMoney, dollars } from "../text/money";
import { Inert } from "../ui/Inert";
import { StatusBadge } from "../ui/StatusBadge";
import { Duration, Time } from "../ui/Time";

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { basic: sortFn_basic, text: sortFn_text },
});
const helper = createColumnHelper<typeof features, Row>();
const quantity = { sortFn: "basic", sortUndefined: "last", sortDescFirst: true } as const;

const columns = helper.columns([
  helper.accessor((row) => row.call.status, { id: "Status", sortFn: "text" }),
  helper.accessor((row) => row.title, { id: "Call", sortFn: "text" }),
  helper.accessor((row) => row.phase, { id: "Phase", sortFn: "text" }),
  helper.accessor((row) => row.call.kind, { id: "Kind", sortFn: "text" }),
  helper.accessor((row) => row.call.model ?? "", { id: "Model", sortFn: "text" }),
  helper.accessor((row) => row.start, { id: "Started", sortFn: "basic" }),
  helper.accessor((row) => row.call.duration_ms, { id: "Duration", ...quantity }),
  helper.accessor((row) => row.call.input_tokens, { id: "Input", ...quantity }),
  helper.accessor((row) => row.call.output_tokens, { id: "Output", ...quantity }),
  helper.accessor((row) => row.call.cost_usd, {
    id: "Cost",
    ...quantity,
    sortFn: (a, b, id) => compareMoney(a.getValue<string>(id), b.getValue<string>(id)),
  }),
]);

interface Props {
  rows: readonly Row[];
  hrefOfCall: (id: string) => string;
}

const ROW_HEIGHT = 34;

/** Every call; only the rows that can be seen are in the document. */
export function CallsTable({ rows, hrefOfCall }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const table = useTable({ features, columns, data: rows as Row[] });
  const sorted = table.getRowModel().rows;
  const lines = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
  });
  const items = lines.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = lines.getTotalSize() - (items.at(-1)?.end ?? 0);
  if (!rows.length) return <p class="empty">No call is like this.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
    <section class="scroller" ref={scroller} tabIndex={0} aria-label="Table of calls">
      <table class="calls" aria-rowcount={sorted.length + 1}>
        <caption class="unseen">Calls of the run; the heads of the columns sort it</caption>
        <thead>
          <tr aria-rowindex={1}>
            {table.getHeaderGroups()[0]?.headers.map((header) => (
              <HeadCell
                key={header.id}
                name={header.column.id}
                sorted={header.column.getIsSorted()}
                sort={() => header.column.toggleSorting()}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Gap height={before} />}
          {items.map((item) => {
            const row = sorted[item.index]?.original;
            return (
              row && (
                <CallRow
                  key={row.call.step_id}
                  row={row}
                  index={item.index}
                  href={hrefOfCall(row.call.step_id)}
                />
              )
            );
          })}
          {after > 0 && <Gap height={after} />}
        </tbody>
      </table>
    </section>
  );
}

function Gap({ height }: { height: number }) {
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it holds nothing that takes the focus
    <tr aria-hidden="true">
      <td colSpan={columns.length} style={{ height, padding: 0 }} />
    </tr>
  );
}

interface HeadProps {
  name: string;
  sorted: false | "asc" | "desc";
  sort: () => void;
}

function HeadCell({ name, sorted, sort }: HeadProps) {
  const order = sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : "none";
  return (
    <th scope="col" aria-sort={order} data-column={name}>
      <button type="button" onClick={sort}>
        {name}
        <span aria-hidden="true">{sorted === "asc" ? " ↑" : sorted === "desc" ? " ↓" : ""}</span>
      </button>
    </th>
  );
}

function CallRow({ row, index, href }: { row: Row; index: number; href: string }) {
  const { call } = row;
  return (
    <tr aria-rowindex={index + 2} class={call.status}>
      <td>
        <StatusBadge status={call.status} />
      </td>
      <td>
        <a href={href}>
          <Inert text={row.title} />
        </a>
      </td>
      <td>
        <Inert text={row.phase} />
      </td>
      <td>{call.kind}</td>
      <td>
        <Inert text={call.model ?? ""} />
      </td>
      <td>
        <Time at={call.started_at} how="clock" />
      </td>
      <td class="right">
        <Duration ms={call.duration_ms} />
      </td>
      <td class="right number">
        {call.input_tokens === undefined ? "–" : count(call.input_tokens)}
      </td>
      <td class="right number">
        {call.output_tokens === undefined ? "–" : count(call.output_tokens)}
      </td>
      <td class="right number">
        {call.cost_usd === undefined ? (
          <span class="unknown">unknown</span>
        ) : (
          dollars(call.cost_usd)
        )}
      </td>
    </tr>
  );
}
