/** What went wrong with a request, and what the person in front of the page can do about it. */
import type { Problem } from "./shapes";

/** `status` 0: no answer at all. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem | null,
    readonly retryAfterMs = 0,
  ) {
    super(problem?.detail ?? (status ? `HTTP ${status}` : "no answer"));
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export function problemIn(body: unknown): Problem | null {
  if (typeof body !== "object" || body === null) return null;
  const found = body as Partial<Problem>;
  return typeof found.title === "string" && typeof found.status === "number"
    ? (found as Problem)
    : null;
}

export interface Advice {
  title: string;
  detail: string;
  todo: string;
}

export function adviceOn(error: unknown): Advice {
  if (!(error instanceof Failure)) {
    return {
      title: "The page could not make sense of the answer",
      detail: error instanceof Error ? error.message : String(error),
      todo: "Reload the page: it may be older than the API.",
    };
  }
  const field = error.problem?.field ? ` (${error.problem.field})` : "";
  const detail = `${error.problem?.detail ?? ""}${field}`;
  if (error.status === 0) {
    return {
      title: "The API cannot be reached",
      detail: "No answer came.",
      todo: "Check the network connection. The page keeps trying.",
    };
  }
  if (error.status === 404) {
    return {
      title: "Not found, or not yours",
      detail,
      todo: "It never was, was deleted, has expired, or belongs to another tenant than your key.",
    };
  }
  if (error.status === 403) {
    return { title: "Not permitted", detail, todo: "Ask for a key of the tenant that owns this." };
  }
  const title = error.problem?.title ?? `The API answered ${error.status}`;
  if (error.passing) {
    const instance = error.problem?.instance ? ` Request: ${error.problem.instance}.` : "";
    return {
      title,
      detail: detail + instance,
      todo: "The page keeps trying; you can try at once.",
    };
  }
  return { title, detail, todo: "Correct what is named above and try again." };
}

const MOST_TRIES = 2;

/** For TanStack Query: whether to repeat a request after so many failures. */
export function shouldRetry(failures: number, error: unknown): boolean {
  return error instanceof Failure && error.passing && failures < MOST_TRIES;
}

/** Milliseconds until then; longer each time, and no sooner than the API asked for. */
export function retryDelay(failures: number, error: unknown): number {
  const asked = error instanceof Failure ? error.retryAfterMs : 0;
  return Math.max(asked, Math.min(30_000, 1_000 * 2 ** failures));
}
