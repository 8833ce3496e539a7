import type { Phase, Phases } from "../api/shapes";
import { hrefOf } from "../route";
import { counted } from "../text/counts";
import { plain } from "../text/inert";
import { dollars } from "../text/money";
import { Inert } from "./Inert";

interface Props {
  phases: Phases;
  run: string;
  chosen?: string;
}

/** The phases of a run side by side, as wide as they have calls, coloured by what failed. */
export function PhaseStrip({ phases, run, chosen }: Props) {
  if (!phases.entries.length) return null;
  return (
    <div class="phases">
      <ol class="strip" aria-label="Phases">
        {phases.entries.map((phase) => (
          <li key={phase.phase} style={{ flexGrow: Math.sqrt(phase.calls) }}>
            <a
              class={`${colourOf(phase)}${phase.phase === chosen ? " chosen" : ""}`}
              href={hrefOf(
                phase.phase === chosen ? ["runs", run] : ["runs", run, "phases", phase.phase],
              )}
              title={titleOf(phase)}
              aria-current={phase.phase === chosen ? "true" : undefined}
            >
              <Inert text={phase.phase} />
              <small>
                {phase.calls.toLocaleString()}
                {phase.failed > 0 && <b> · {phase.failed.toLocaleString()} failed</b>}
              </small>
            </a>
          </li>
        ))}
      </ol>
      {phases.partial && <p class="hint">{partialNote(phases)}</p>}
    </div>
  );
}

export function partialNote(phases: Phases): string {
  const covered = counted(phases.calls, "call");
  return phases.source === "preview"
    ? `Phases of the first ${covered} only, until the run is summarised.`
    : `Phases as of ${covered}; the summary is behind.`;
}

function colourOf(phase: Phase): string {
  if (!phase.failed) return "succeeded";
  return phase.failed === phase.calls ? "failed" : "mixed";
}

function titleOf(phase: Phase): string {
  const calls = counted(phase.calls, "call");
  return `${plain(phase.phase)}: ${calls}, ${phase.failed} failed, ${dollars(phase.cost_usd)}`;
}
