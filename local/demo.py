"""Everything once: start, deploy, send the sample runs, await their summaries, compare, end."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from functions.api import shapes
from functions.core.keys import RunRef
from local import function_logs, replay, valkey_server, waiting
from local.commands import LocalStageError
from local.emulator import Emulator
from local.paths import RECORDINGS
from local.progress import bar, doing
from local.reading import Reading, register
from local.recordings import ExpectedTotals, Recording
from local.running import deployed
from local.sending import send
from local.shared_budget import SharedBudget, share_a_budget, show_shared_budget
from local.show import show_run
from local.stage import Stage
from local.tables import counted, runs_table

_SUMMARISED_WITHIN_S: Final = 180
_QUIET_WITHIN_S: Final = 60


type Look = Callable[[Reading, Sequence[shapes.ListedRun], SharedBudget | None], None]
"""What looks at the runs while their stage is still up."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo came to; no `mismatches` when every run's totals are those of its file."""

    refs: list[RunRef]
    results: list[shapes.ListedRun]
    mismatches: list[str]
    seconds: float
    write_units: Decimal
    shared: SharedBudget | None = None
    """None where there is no Valkey server."""

    @property
    def wrong(self) -> list[str]:
        """All that makes it fail: mismatches, also between the shared budget and its record."""
        return [*self.mismatches, *(self.shared.mismatches() if self.shared else ())]

    @property
    def write_units_per_step(self) -> Decimal:
        steps = sum(run.totals.agents_total for run in self.results)
        return (self.write_units / steps).quantize(Decimal("0.0001"))

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": [
                {"tenant_id": ref.tenant_id, **_json_of(run)}
                for ref, run in zip(self.refs, self.results, strict=True)
            ],
            "seconds": round(self.seconds, 1),
            "write_units_per_step": float(self.write_units_per_step),
            "shared_budget": self.shared and self.shared.as_json(),
        }


def run_demo(files: Sequence[Path], look: Look) -> Demo:
    """Send the shipped recordings, or the given files, through a stage of their own; then let
    workers share a budget there."""
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
        units = write_units()
        reading = Reading.of(stage, recorded[0].tenant_id)
        shared = _shared(reading, emulator)
        look(reading, results, shared)
        return Demo(
            refs=[replay.ref_of(recording) for recording in recorded],
            results=results,
            mismatches=mismatches(results, [replay.expected(r) for r in recorded]),
            seconds=time.monotonic() - started,
            write_units=units,
            shared=shared,
        )


def _shared(reading: Reading, emulator: Emulator) -> SharedBudget | None:
    with valkey_server.at_hand() as url:
        if url is None:
            return None
        access, spool = emulator.access.variables(), emulator.folder / "spool"
        return share_a_budget(reading, url, access, spool, _SUMMARISED_WITHIN_S)


def look_around(
    out: Console,
    reading: Reading,
    results: Sequence[shapes.ListedRun],
    shared: SharedBudget | None = None,
) -> None:
    """What `runtally runs` shows, `runtally show` of a run in which something failed, and what
    workers made of a shared budget."""
    chosen = next((run for run in results if run.totals.failed_total), results[0])
    out.print("[dim]$[/] runtally runs", highlight=False)
    out.print(runs_table(reading.runs(limit=20), time.time_ns(), out.width), "")
    out.print(f"[dim]$[/] runtally show {chosen.run_id}", highlight=False)
    show_run(out, reading.ask("readRun", run_id=chosen.run_id))
    if shared:
        show_shared_budget(out, shared)


def send_and_wait(
    stage: Stage, recorded: Sequence[Recording], within_s: float, speed: float = 0
) -> list[shapes.ListedRun]:
    """Send runs and return what became of them once all are summarised."""
    messages = sum(len(recording.messages) for recording in recorded)
    register(stage, (recording.tenant_id for recording in recorded))
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


def mismatches(
    results: Sequence[shapes.ListedRun], expected: Sequence[ExpectedTotals]
) -> list[str]:
    """Where the stage's totals differ from an independent sum over the recorded file."""
    found = []
    for result, wanted in zip(results, expected, strict=True):
        totals = result.totals
        shown = {
            **msgspec.structs.asdict(totals),
            "cost_usd_total": Decimal(totals.cost_usd_total),
            "run_id": result.run_id,
            "status": result.status,
        }
        found += [
            f"{wanted.run_id}: {name} is {shown[name]}, the recording says {value}"
            for name, value in asdict(wanted).items()
            if shown[name] != value
        ]
        calls = sum(phase.calls for phase in result.phases.entries)
        if calls != wanted.agents_total:
            found.append(f"{wanted.run_id}: phases cover {calls} of {wanted.agents_total} calls")
    return found


def _json_of(run: shapes.ListedRun) -> dict[str, Any]:
    of_run = ("run_id", "pipeline", "status")
    of_totals = (
        "agents_total", "failed_total", "cost_usd_total", "cost_unknown_total", "input_tokens",
        "output_tokens", "cached_tokens",
    )  # fmt: skip
    of_phase = (
        "phase", "calls", "failed", "cost_usd", "cost_unknown", "p50_ms", "p95_ms", "wall_ms",
    )  # fmt: skip
    return {
        **{name: getattr(run, name) for name in of_run},
        **{name: getattr(run.totals, name) for name in of_totals},
        "phases": [
            {name: getattr(phase, name) for name in of_phase} for phase in run.phases.entries
        ],
    }


def _load(files: Sequence[Path]) -> list[Recording]:
    recorded = [recording for file in files for recording in replay.load(file)]
    if not recorded:
        raise LocalStageError(f"No recordings in {RECORDINGS}.", "Run `make samples`.")
    return recorded
