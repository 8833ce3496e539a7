import type { Insights, PhaseFigures, PipelineFigures } from "../api/shapes";
import { hrefOf, type Route } from "../route";
import { count } from "../text/counts";
import { Cost } from "../ui/Figures";
import { Inert } from "../ui/Inert";
import { Duration } from "../ui/Time";

interface Props {
  insights: Insights;
  query: Route["query"];
}

/** Pipelines, and below each its phases. */
export function FiguresTable({ insights, query }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
    <section class="scroller" tabIndex={0} aria-label="Figures by pipeline and phase">
      <table>
        <caption class="unseen">
          Runs that started in this time, by pipeline and phase; percentiles are the median run's
        </caption>
        <thead>
          <tr>
            <th scope="col">Pipeline, phase</th>
            {["Runs", "Calls", "Failed", "Cost", "Input", "Output", "p50", "p95", "Max"].map(
              (name) => (
                <th key={name} scope="col" class="right">
                  {name}
                </th>
              ),
            )}
          </tr>
        </thead>
        {insights.pipelines.map((pipeline) => (
          <tbody key={pipeline.pipeline}>
            <tr class="group">
              <th scope="row">
                <a href={hrefOf(["insights"], { ...query, pipeline: pipeline.pipeline })}>
                  <Inert text={pipeline.pipeline} />
                </a>
                <Statuses pipeline={pipeline} />
              </th>
              <Cells figures={pipeline} />
            </tr>
            {pipeline.phases.map((phase) => (
              <tr key={phase.phase}>
                <th scope="row" class="below">
                  <Inert text={phase.phase} />
                </th>
                <Cells figures={phase} />
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </section>
  );
}

function Statuses({ pipeline }: { pipeline: PipelineFigures }) {
  return (
    <span class="hint statuses">
      {Object.entries(pipeline.by_status).map(([status, runs]) => (
        <a
          key={status}
          class={status}
          href={hrefOf(["runs"], { pipeline: pipeline.pipeline, status })}
        >
          {count(runs)} {status}
        </a>
      ))}
    </span>
  );
}

function Cells({ figures }: { figures: PipelineFigures | PhaseFigures }) {
  return (
    <>
      <td class="right number">{count(figures.runs)}</td>
      <td class="right number">{count(figures.calls)}</td>
      <td class={figures.failed ? "right number failed" : "right number"}>
        {count(figures.failed)}
      </td>
      <td class="right">
        <Cost amount={figures.cost_usd} unknown={figures.cost_unknown} calls={figures.calls} />
      </td>
      <td class="right number">{count(figures.input_tokens)}</td>
      <td class="right number">{count(figures.output_tokens)}</td>
      <td class="right">
        <Duration ms={figures.p50_ms} />
      </td>
      <td class="right">
        <Duration ms={figures.p95_ms} />
      </td>
      <td class="right">
        <Duration ms={figures.max_ms} />
      </td>
    </>
  );
}
