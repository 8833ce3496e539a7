"""Everything once: start, deploy, send the sample runs, await their summaries, compare, end."""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from local import function_logs, replay, waiting
from local.commands import LocalStageError
from local.emulator import Emulator
from local.paths import RECORDINGS
from local.progress import bar, doing
from local.recordings import ExpectedTotals, Recording
from local.results import RunResult
from local.running import deployed
from local.sending import send
from local.stage import Stage
from local.tables import counted, json_of

_SUMMARISED_WITHIN_S: Final = 180
_QUIET_WITHIN_S: Final = 60


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo came to; no `mismatches` when every run's totals are those of its file."""

    results: list[RunResult]
    mismatches: list[str]
    seconds: float
    write_units: Decimal

    @property
    def write_units_per_step(self) -> Decimal:
        steps = sum(result.totals.agents_total for result in self.results)
        return (self.write_units / steps).quantize(Decimal("0.0001"))

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": [json_of(result) for result in self.results],
            "seconds": round(self.seconds, 1),
            "write_units_per_step": float(self.write_units_per_step),
        }


def run_demo(files: Sequence[Path] = ()) -> Demo:
    """Send the shipped recordings, or the given files, through a stage of their own."""
    started = time.monotonic()
    recorded = _load(files or sorted(RECORDINGS.glob("*.jsonl.gz")))
    with doing("Start the embedded AWS"):
        emulator = Emulator()
    with emulator, closing(deployed(emulator)) as stage:
        results = send_and_wait(stage, recorded, _SUMMARISED_WITHIN_S)

        def write_units() -> Decimal:
            return function_logs.sum_of_metric(stage, "WriteUnits")

        with doing("Let the stage come to rest"):
            waiting.until_quiet(stage, write_units, _QUIET_WITHIN_S)
        return Demo(
            results=results,
            mismatches=mismatches(results, [replay.expected(r) for r in recorded]),
            seconds=time.monotonic() - started,
            write_units=write_units(),
        )


def send_and_wait(
    stage: Stage, recorded: Sequence[Recording], within_s: float, speed: float = 0
) -> list[RunResult]:
    """Send runs and return what became of them once all are summarised."""
    messages = sum(len(recording.messages) for recording in recorded)
    with (
        doing(f"Send {counted(len(recorded), 'run')} in {counted(messages, 'message')}"),
        bar() as progress,
    ):
        sent = progress.add_task("sent", total=messages)
        send(stage, recorded, speed=speed, on_sent=lambda n: progress.advance(sent, n))
    wanted = [(replay.ref_of(r), replay.expected(r).agents_total) for r in recorded]
    with doing("Wait for the summaries"), bar() as progress:
        done = progress.add_task("summarised", total=len(wanted))
        return waiting.until_summarised(
            stage, wanted, within_s, lambda n: progress.update(done, completed=n)
        )


def mismatches(results: Sequence[RunResult], expected: Sequence[ExpectedTotals]) -> list[str]:
    """Where the stage's totals differ from an independent sum over the recorded file."""
    found = []
    for result, wanted in zip(results, expected, strict=True):
        shown = result.totals.as_attributes() | {
            "run_id": result.ref.run_id,
            "status": result.status,
        }
        found += [
            f"{wanted.run_id}: {name} is {shown[name]}, the recording says {value}"
            for name, value in asdict(wanted).items()
            if shown[name] != value
        ]
        if (calls := sum(phase.calls for phase in result.phases)) != wanted.agents_total:
            found.append(f"{wanted.run_id}: phases cover {calls} of {wanted.agents_total} calls")
    return found


def _load(files: Sequence[Path]) -> list[Recording]:
    recorded = [recording for file in files for recording in replay.load(file)]
    if not recorded:
        raise LocalStageError(f"No recordings in {RECORDINGS}.", "Run `make samples`.")
    return recorded
