import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "preact/compat";
import { useMemo } from "preact/hooks";
import { readInsights } from "../api/client";
import { go, hrefOf, type Route } from "../route";
import { Moment } from "../runs/Filters";
import { counted } from "../text/counts";
import { Inert } from "../ui/Inert";
import { Time } from "../ui/Time";
import { Skeleton, Trouble } from "../ui/Trouble";
import { FiguresTable } from "./FiguresTable";
import { allSeries, filterOf, METRICS, type Metric, RANGES, spanOf } from "./figures";

const TrendChart = lazy(() => import("./TrendChart"));
const MINUTE_MS = 60_000;

export default function InsightsView({ query }: { query: Route["query"] }) {
  const { pipeline, range, from, to } = query;
  const metric: Metric =
    query.metric && query.metric in METRICS ? (query.metric as Metric) : "cost";
  const insights = useQuery({
    queryKey: ["insights", { pipeline, range, from, to }],
    queryFn: async ({ signal }) => {
      const span = spanOf(query, Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS);
      return { span, found: await readInsights(filterOf(span, pipeline), signal) };
    },
    staleTime: 60_000,
  });
  const error = insights.error ?? insights.failureReason;
  const change = (name: string, value: string | undefined) =>
    go(hrefOf(["insights"], { ...query, [name]: value }), "replace");
  return (
    <>
      <h1>Insights</h1>
      <form class="filters" aria-label="Range of time" onSubmit={(event) => event.preventDefault()}>
        <Ranges query={query} />
        {range === "custom" && (
          <>
            <Moment name="from" label="From" query={query} change={change} />
            <Moment name="to" label="until" query={query} change={change} />
          </>
        )}
        {pipeline && (
          <span class="chip">
            Pipeline <Inert text={pipeline} />{" "}
            <a href={hrefOf(["insights"], { ...query, pipeline: undefined })}>all pipelines</a>
          </span>
        )}
      </form>
      {error && (
        <Trouble error={error} retry={() => insights.refetch()} busy={insights.isFetching} />
      )}
      {insights.isPending && !error && <Skeleton rows={4} what="insights" />}
      {insights.data && <Shown {...insights.data} query={query} metric={metric} change={change} />}
    </>
  );
}

function Ranges({ query }: { query: Route["query"] }) {
  const chosen = query.range ?? "7d";
  const names = { ...RANGES, custom: { name: "Custom" } };
  return (
    <fieldset class="choices">
      <legend class="unseen">Runs that started within</legend>
      {Object.entries(names).map(([range, { name }]) => (
        <a
          key={range}
          class="button"
          aria-current={range === chosen ? "true" : undefined}
          href={hrefOf(["insights"], { ...query, range })}
        >
          {name}
        </a>
      ))}
    </fieldset>
  );
}

interface ShownProps {
  span: ReturnType<typeof spanOf>;
  found: Awaited<ReturnType<typeof readInsights>>;
  query: Route["query"];
  metric: Metric;
  change: (name: string, value: string) => void;
}

function Shown({ span, found, query, metric, change }: ShownProps) {
  const series = useMemo(
    () => allSeries(found, Boolean(query.pipeline), metric, span),
    [found, query.pipeline, metric, span],
  );
  if (!found.runs) return <p class="empty">No run started in this time.</p>;
  return (
    <>
      {!found.complete && (
        <p class="notice">
          Not all of it could be added up in time: these are the runs from{" "}
          {found.covers_from && <Time at={found.covers_from} how="date" />} on. Choose a shorter
          time.
        </p>
      )}
      {found.partial_runs > 0 && (
        <p class="hint">
          {counted(found.partial_runs, "run")} without a complete summary: their phases cover only
          some of their calls; the sums of the pipelines are whole.
        </p>
      )}
      {series.length > 0 ? (
        <>
          <fieldset class="choices">
            <legend class="unseen">Figure that is drawn</legend>
            {Object.entries(METRICS).map(([name, title]) => (
              <button
                key={name}
                type="button"
                aria-pressed={name === metric}
                onClick={() => change("metric", name)}
              >
                {title}
              </button>
            ))}
          </fieldset>
          <Suspense fallback={<Skeleton rows={3} what="chart" />}>
            <TrendChart series={series} metric={metric} span={span} />
          </Suspense>
        </>
      ) : (
        <p class="hint">This time is too long for a chart: these are the sums.</p>
      )}
      <FiguresTable insights={found} query={query} />
    </>
  );
}
