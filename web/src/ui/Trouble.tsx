import { adviceOn } from "../api/failure";

interface Props {
  error: unknown;
  retry?: () => void;
  busy?: boolean;
  /** Said when something of it is on the page all the same. */
  kept?: string;
}

/** What went wrong and what to do about it. */
export function Trouble({ error, retry, busy = false, kept }: Props) {
  const { title, detail, todo } = adviceOn(error);
  return (
    <div class="trouble" role="alert">
      <strong>{title}</strong>
      {detail && <p>{detail}</p>}
      <p>
        {todo} {kept}
      </p>
      {retry && (
        <button type="button" onClick={retry} disabled={busy}>
          {busy ? "Trying…" : "Try again"}
        </button>
      )}
    </div>
  );
}

export function Skeleton({ rows, what }: { rows: number; what: string }) {
  return (
    <div role="status" class="skeletons">
      <span class="unseen">Loading {what}…</span>
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} class="skeleton" aria-hidden="true" />
      ))}
    </div>
  );
}
