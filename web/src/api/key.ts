/** The API key of this tab, and why there is none: kept for the tab only, never in an address. */
import { useSyncExternalStore } from "preact/compat";

const NAME = "runtally.key";

export interface KeyState {
  readonly key: string | null;
  /** Why the last key was given up, as the API told it. */
  readonly reason: string;
}

let state: KeyState = { key: sessionStorage.getItem(NAME), reason: "" };
const listeners = new Set<() => void>();

function become(next: KeyState): void {
  state = next;
  for (const listener of listeners) listener();
}

export function currentKey(): string | null {
  return state.key;
}

export function keepKey(given: string): void {
  sessionStorage.setItem(NAME, given);
  become({ key: given, reason: "" });
}

export function forgetKey(reason = ""): void {
  sessionStorage.removeItem(NAME);
  become({ key: null, reason });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useKeyState(): KeyState {
  return useSyncExternalStore(subscribe, () => state);
}
