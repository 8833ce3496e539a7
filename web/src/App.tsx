import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";
import { forgetKey, useKeyState } from "./api/key";
import { hrefOf, type Route, useRoute } from "./route";
import { RunsView } from "./runs/RunsView";
import { SignIn } from "./SignIn";
import { REGION } from "./ui/announce";
import { Skeleton } from "./ui/Trouble";

const RunView = lazy(() => import("./run/RunView"));
const InsightsView = lazy(() => import("./insights/InsightsView"));
const CompareView = lazy(() => import("./insights/CompareView"));

export function App() {
  const { key, reason } = useKeyState();
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  const queries = useQueryClient();
  useEffect(() => {
    if (key === null) queries.clear();
  }, [key, queries]);
  useEffect(() => {
    document.title = `${TITLES[route.view]} · runtally`;
    scrollTo(0, 0);
  }, [route.view, route.run]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="page-header">
        <a class="brand" href={hrefOf(["runs"])}>
          runtally
        </a>
        {key !== null && <Navigation view={route.view} />}
        {key !== null && (
          <button type="button" class="quiet" onClick={() => forgetKey()}>
            Forget key
          </button>
        )}
      </header>
      <main ref={main} tabIndex={-1}>
        {key === null ? (
          <SignIn reason={reason} />
        ) : (
          <Suspense fallback={<Skeleton rows={4} what="view" />}>{viewOf(route)}</Suspense>
        )}
      </main>
      <div id={REGION} class="unseen" role="status" aria-live="polite" />
    </>
  );
}

const TITLES: Record<Route["view"], string> = {
  runs: "Runs",
  run: "Run",
  insights: "Insights",
  compare: "Compare",
  unknown: "Not found",
};

function Navigation({ view }: { view: Route["view"] }) {
  const current = view === "run" ? "runs" : view;
  return (
    <nav aria-label="Views">
      {(["runs", "insights", "compare"] as const).map((name) => (
        <a key={name} href={hrefOf([name])} aria-current={name === current ? "page" : undefined}>
          {TITLES[name]}
        </a>
      ))}
    </nav>
  );
}

function viewOf(route: Route) {
  switch (route.view) {
    case "runs":
      return <RunsView query={route.query} />;
    case "run":
      return <RunView key={route.run} route={route} />;
    case "insights":
      return <InsightsView query={route.query} />;
    case "compare":
      return <CompareView query={route.query} />;
    default:
      return (
        <div class="empty">
          <h1>There is no such view</h1>
          <p>
            <a href={hrefOf(["runs"])}>Show all runs</a>
          </p>
        </div>
      );
  }
}
