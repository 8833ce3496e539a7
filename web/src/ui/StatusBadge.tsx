import type { Status } from "../api/shapes";

const PATHS: Record<Status, string> = {
  succeeded: "M3.5 8.5l3 3 6-7",
  failed: "M4 4l8 8M12 4l-8 8",
  cancelled: "M3.5 8h9",
  running: "M8 3a5 5 0 1 1-4.6 3",
  stale: "M8 4v4.5l3 1.5",
};

/** Told by shape and word, not by colour alone. */
export function StatusBadge({ status }: { status: Status }) {
  return (
    <span class={`status ${status}`}>
      <StatusIcon status={status} />
      {status}
    </span>
  );
}

export function StatusIcon({ status }: { status: Status }) {
  return (
    <svg class={`icon ${status}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={PATHS[status]} fill="none" stroke="currentColor" stroke-width="2" />
    </svg>
  );
}
