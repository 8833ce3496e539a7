import { useEffect, useId, useRef } from "preact/hooks";
import type { CallSet } from "../calls/rows";
import { go, hrefOfRun, type Route } from "../route";
import { CopyButton } from "../ui/Buttons";
import { Inert, LongText } from "../ui/Inert";
import { StatusBadge } from "../ui/StatusBadge";
import { Skeleton } from "../ui/Trouble";
import { Facts } from "./Facts";
import { PayloadView } from "./PayloadView";

interface Props {
  route: Route;
  set: CallSet;
  /** Whether every call of the run is in the set. */
  loaded: boolean;
  close: () => void;
}

/** A modal dialog: the browser keeps the focus inside; Esc closes it. */
export function CallDrawer({ route, set, loaded, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const row = set.byId.get(route.call);
  useEffect(() => {
    const before = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      element?.close();
      // The row may have been scrolled away; then the browser has nowhere to give the focus back to.
      const there = before instanceof HTMLElement && before.isConnected ? before : null;
      (there ?? document.querySelector<HTMLElement>("main"))?.focus({ preventScroll: true });
    };
  }, []);
  const onClick = (event: MouseEvent) => {
    if (event.target === dialog.current) close();
  };
  const onCancel = (event: Event) => {
    event.preventDefault();
    close();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc does what a click beside it does
    <dialog
      class="drawer"
      ref={dialog}
      aria-labelledby={title}
      onClick={onClick}
      onCancel={onCancel}
    >
      <div class="drawer-content">
        <header class="title">
          {row && <StatusBadge status={row.call.status} />}
          <h2 id={title}>{row ? <Inert text={row.title} /> : "Call"}</h2>
          <Neighbours route={route} set={set} />
          <button type="button" class="quiet" onClick={close} aria-label="Close">
            ✕
          </button>
        </header>
        <p class="hint">
          <span class="id">{route.call}</span> <CopyButton text={route.call} what="call id" />
        </p>
        {row?.call.error && (
          <div class="error">
            <LongText text={row.call.error} />
          </div>
        )}
        {row && <Facts row={row} set={set} route={route} />}
        {!row && !loaded && <Skeleton rows={2} what="call" />}
        {!row && loaded && (
          <p class="notice">The run has no such call, or it has not arrived yet.</p>
        )}
        <PayloadView
          key={route.call}
          run={route.run}
          step={route.call}
          kind={row?.call.kind ?? ""}
        />
      </div>
    </dialog>
  );
}

function Neighbours({ route, set }: { route: Route; set: CallSet }) {
  const at = set.rows.findIndex((row) => row.call.step_id === route.call);
  if (at < 0) return null;
  const link = (to: number, name: string, sign: string) => {
    const id = set.rows[to]?.call.step_id;
    return (
      <button
        type="button"
        class="quiet"
        aria-label={name}
        title={name}
        disabled={id === undefined}
        onClick={() => id && go(hrefOfRun(route, id), "replace")}
      >
        {sign}
      </button>
    );
  };
  return (
    <>
      {link(at - 1, "Previous call", "↑")}
      {link(at + 1, "Next call", "↓")}
    </>
  );
}
