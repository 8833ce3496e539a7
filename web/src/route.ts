/** Where the page is: everything after the `#` of its address. */
import { useSyncExternalStore } from "preact/compat";

export interface Route {
  view: "runs" | "run" | "insights" | "compare" | "unknown";
  run: string;
  phase: string;
  call: string;
  query: Readonly<Record<string, string>>;
}

type Query = Record<string, string | undefined>;

export function routeOf(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [head = "", run = "", kind = "", id = ""] = path.split("/").map(decoded);
  const route: Route = { view: "unknown", run, phase: "", call: "", query };
  if (head === "" || (head === "runs" && !run)) return { ...route, view: "runs" };
  if (head === "insights" || head === "compare") return { ...route, view: head, run: "" };
  if (head !== "runs") return route;
  if (!kind) return { ...route, view: "run" };
  if (kind === "phases" && id) return { ...route, view: "run", phase: id };
  if (kind === "calls" && id) return { ...route, view: "run", call: id, phase: query.phase ?? "" };
  return route;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hrefOf(parts: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

/** A run with the same filter, and perhaps a call of it open. */
export function hrefOfRun(route: Route, call = "", query: Query = {}): string {
  const all = { ...route.query, phase: undefined, ...query };
  if (call) return hrefOf(["runs", route.run, "calls", call], { ...all, phase: route.phase });
  const where = route.phase ? ["phases", route.phase] : [];
  return hrefOf(["runs", route.run, ...where], all);
}

export function go(href: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  addEventListener("popstate", listener);
  return () => {
    removeEventListener("hashchange", listener);
    removeEventListener("popstate", listener);
  };
}

let last = { hash: "", route: routeOf("") };

export function useRoute(): Route {
  return useSyncExternalStore(subscribe, () => {
    if (last.hash !== location.hash) last = { hash: location.hash, route: routeOf(location.hash) };
    return last.route;
  });
}
