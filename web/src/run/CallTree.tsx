import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallSet, Row } from "../calls/rows";
import { kept, type Line, linesOf, treeOf } from "../calls/tree";
import { dollars } from "../text/money";
import { Inert } from "../ui/Inert";
import { StatusIcon } from "../ui/StatusBadge";
import { Duration } from "../ui/Time";

interface Props {
  rows: readonly Row[];
  set: CallSet;
  open: (id: string) => void;
}

const LINE_HEIGHT = 28;

/** Keys as https://www.w3.org/WAI/ARIA/apg/patterns/treeview/ asks for; Enter opens the call. */
export function CallTree({ rows, set, open }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState(0);
  const roots = useMemo(() => treeOf(set.rows), [set]);
  const lines = useMemo(
    () => linesOf(roots, collapsed, kept(set.byId, rows)),
    [roots, collapsed, set, rows],
  );
  const view = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 12,
  });
  useEffect(() => setActive((at) => Math.min(at, Math.max(0, lines.length - 1))), [lines.length]);
  const fold = (id: string, closed: boolean) => {
    const next = new Set(collapsed);
    if (closed) next.add(id);
    else next.delete(id);
    setCollapsed(next);
  };
  const move = (to: number) => {
    setActive(to);
    view.scrollToIndex(to, { align: "auto" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const line = lines[active];
    if (!line) return;
    const id = line.node.row.call.step_id;
    const isFolded = collapsed.has(id);
    const isParent = line.node.children.length > 0;
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(Math.min(active + 1, lines.length - 1)),
      ArrowUp: () => move(Math.max(active - 1, 0)),
      Home: () => move(0),
      End: () => move(lines.length - 1),
      PageDown: () => move(Math.min(active + 20, lines.length - 1)),
      PageUp: () => move(Math.max(active - 20, 0)),
      ArrowRight: () => (isFolded ? fold(id, false) : isParent && move(active + 1)),
      ArrowLeft: () =>
        isParent && !isFolded ? fold(id, true) : line.parent >= 0 && move(line.parent),
      Enter: () => open(id),
      " ": () => open(id),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  if (!lines.length) return <p class="empty">No call is like this.</p>;
  return (
    <>
      <div class="toolbar">
        <button type="button" class="quiet" onClick={() => setCollapsed(parentsOf(set))}>
          Collapse all
        </button>
        <button type="button" class="quiet" onClick={() => setCollapsed(new Set())}>
          Expand all
        </button>
        <span class="hint">Arrow keys move, Enter opens a call.</span>
      </div>
      <div
        class="scroller tree"
        ref={scroller}
        role="tree"
        aria-label="Calls, nested"
        tabIndex={0}
        aria-activedescendant={`line-${active}`}
        onKeyDown={onKeyDown}
      >
        <div role="presentation" style={{ height: view.getTotalSize(), position: "relative" }}>
          {view.getVirtualItems().map((item) => {
            const line = lines[item.index];
            if (!line) return null;
            const id = line.node.row.call.step_id;
            return (
              <TreeLine
                key={id}
                index={item.index}
                top={item.start}
                line={line}
                set={set}
                active={item.index === active}
                folded={collapsed.has(id)}
                fold={(closed) => fold(id, closed)}
                open={() => {
                  setActive(item.index);
                  open(id);
                }}
              />
            );
          })}
        </div>
      </div>
    </>
  );
}

function parentsOf(set: CallSet): ReadonlySet<string> {
  return new Set(set.rows.flatMap((row) => (row.parent === undefined ? [] : [row.parent])));
}

interface LineProps {
  index: number;
  top: number;
  line: Line;
  set: CallSet;
  active: boolean;
  folded: boolean;
  fold: (closed: boolean) => void;
  open: () => void;
}

const DEEPEST_INDENT = 24;

function TreeLine({ index, top, line, set, active, folded, fold, open }: LineProps) {
  const { row, children } = line.node;
  const { call } = row;
  const span = Math.max(set.to - set.from, 1e-6);
  const left = ((row.start - set.from) / span) * 100;
  const width = ((row.end - row.start) / span) * 100;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree itself takes the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, and names this line
    <div
      id={`line-${index}`}
      role="treeitem"
      class={active ? `line active ${call.status}` : `line ${call.status}`}
      aria-level={line.level}
      aria-setsize={line.siblings}
      aria-posinset={line.position}
      aria-expanded={children.length ? !folded : undefined}
      aria-selected={active}
      style={{ transform: `translateY(${top}px)` }}
      onClick={open}
    >
      <span class="name" style={{ paddingLeft: Math.min(line.level - 1, DEEPEST_INDENT) * 14 }}>
        {children.length > 0 ? (
          <span
            class={folded ? "fold folded" : "fold"}
            aria-hidden="true"
            onClick={(event) => {
              event.stopPropagation();
              fold(!folded);
            }}
          >
            ▾
          </span>
        ) : (
          <span class="fold" />
        )}
        <StatusIcon status={call.status} />
        <Inert text={row.title} />
        {call.status !== "succeeded" && <span class={call.status}>{call.status}</span>}
        <span class="hint">
          {call.kind}
          {call.model && (
            <>
              {" · "}
              <Inert text={call.model} />
            </>
          )}
        </span>
      </span>
      <span class="span" aria-hidden="true">
        <i class={call.status} style={{ left: `${left}%`, width: `${width}%` }} />
      </span>
      <span class="right">
        <Duration ms={call.duration_ms} />
      </span>
      <span class="right number">{call.cost_usd === undefined ? "–" : dollars(call.cost_usd)}</span>
    </div>
  );
}
