import { lazy, Suspense } from "preact/compat";
import { useMemo } from "preact/hooks";
import type { RunDetail } from "../api/shapes";
import { type CallFilter, filtered } from "../calls/filter";
import type { CallSet } from "../calls/rows";
import { go, hrefOf, hrefOfRun, type Route } from "../route";
import { Tabs } from "../ui/Tabs";
import { Skeleton } from "../ui/Trouble";
import { CallFilters } from "./CallFilters";
import { CallsTable } from "./CallsTable";
import { CallTree } from "./CallTree";
import { LogLines, RunResult } from "./Outcome";
import { PhasesTable } from "./PhasesTable";

const Timeline = lazy(() => import("./Timeline"));

const TABS = {
  timeline: "Timeline",
  tree: "Tree",
  calls: "Calls",
  phases: "Phases",
  result: "Result",
  logs: "Logs",
};

interface Props {
  route: Route;
  head: RunDetail;
  set: CallSet;
}

/** All views of a run's calls share one filter, which stands in the address. */
export function Calls({ route, head, set }: Props) {
  const { query, run, phase } = route;
  const tab = query.tab && query.tab in TABS ? query.tab : "timeline";
  const { text = "", status = "", kind = "" } = query;
  const named = useMemo(
    () => new Set(head.phases?.entries.map((entry) => entry.phase)),
    [head.phases],
  );
  const filter: CallFilter = useMemo(
    () => ({ text, status, kind, phase }),
    [text, status, kind, phase],
  );
  const rows = useMemo(() => filtered(set.rows, filter, named), [set, filter, named]);
  const change = (name: string, value: string) =>
    go(hrefOfRun(route, route.call, { [name]: value }), "replace");
  const hrefOfCall = (id: string) => hrefOfRun(route, id);
  const views: Record<string, () => preact.ComponentChild> = {
    timeline: () => (
      <Suspense fallback={<Skeleton rows={3} what="timeline" />}>
        <Timeline rows={rows} set={set} open={(id) => go(hrefOfCall(id))} />
      </Suspense>
    ),
    tree: () => <CallTree rows={rows} set={set} open={(id) => go(hrefOfCall(id))} />,
    calls: () => <CallsTable rows={rows} hrefOfCall={hrefOfCall} />,
    phases: () => <PhasesTable head={head} rows={rows} hrefOfCall={hrefOfCall} />,
    result: () => <RunResult run={head.run} result={head.result} />,
    logs: () => <LogLines logs={head.logs} />,
  };
  return (
    <section aria-label="Calls">
      {tab !== "result" && tab !== "logs" && (
        <CallFilters
          filter={filter}
          set={set}
          shown={rows}
          change={change}
          allHref={hrefOf(["runs", run], { tab: query.tab })}
        />
      )}
      <Tabs label="Views of the run" tabs={TABS} chosen={tab} choose={(it) => change("tab", it)}>
        {views[tab]?.()}
      </Tabs>
    </section>
  );
}
