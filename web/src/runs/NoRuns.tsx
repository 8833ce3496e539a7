import { hrefOf } from "../route";

export function NoRuns({ filtered }: { filtered: boolean }) {
  if (filtered) {
    return (
      <div class="empty">
        <h2>No run is like this</h2>
        <p>
          The pipeline has to be named exactly as it was recorded.{" "}
          <a href={hrefOf(["runs"])}>Show all runs</a>
        </p>
      </div>
    );
  }
  return (
    <div class="empty">
      <h2>No runs yet</h2>
      <p>Record a first one from a worker:</p>
      <pre class="code">
        {[
          "from runtally import Recorder",
          "",
          "recorder = Recorder.from_environment()",
          'with recorder.run("research") as run:',
          '    with run.step("plan", phase="plan", kind="agent"):',
          "        ...",
        ].join("\n")}
      </pre>
      <p>
        An agent that speaks OpenTelemetry needs only the API's address and a key. This page looks
        for new runs by itself. A key sees the runs of its own tenant alone: if you expect some
        here, it may be the key of another.
      </p>
    </div>
  );
}
