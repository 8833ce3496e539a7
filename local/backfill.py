"""The command `runtally backfill`: earlier ended runs into the lake of a stage."""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from functions.core.keys import RunRef
from local.at_once import each_done
from local.backfilling import WriteByFunction, in_lake
from local.cloud import MOST_AT_ONCE
from local.commands import LocalStageError
from local.connect import Connect, connect
from local.ended_runs import EndedRuns, Failed, refuse_both, show_failed
from local.moments import Since, Until
from local.progress import bar, console
from local.reading import Reading, TenantOptions, write_json
from local.stage import Stage
from local.tables import counted

_HERE: Final = TenantOptions()
_AT_ONCE: Final = 8


class Chosen(NamedTuple):
    """The runs to write; how many the lake has already; how many are open."""

    refs: list[RunRef]
    there: int = 0
    open: int = 0


class Backfilled(Struct, frozen=True):
    """Runs that were written, with how many rows, or with `dry_run` would be; those that the lake
    had already; those that are open; those of which it has nothing all the same, being deleted, not
    summarised yet, or without calls that have expired; and those that could not be written."""

    dry_run: bool
    lake: str
    runs: int
    rows: int
    there: int
    open: int
    without: int
    failed: list[Failed]


def backfill(  # noqa: PLR0913 - one an option
    run: str | None = None,
    /,
    *,
    pipeline: str | None = None,
    since: Since = None,
    until: Until = None,
    again: bool = False,
    dry_run: bool = False,
    at_once: Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_AT_ONCE))] = _AT_ONCE,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> int:
    """Write a tenant's ended runs to the stage's lake: those that ended before there was one.

    Runs that end from then on are written by themselves; this also writes those that were given up.
    What the lake has is skipped, so that the same command goes on where it was broken off. Fails
    when a run could not be written; the others are.

    Parameters
    ----------
    run
        One run, by its id, whether the lake has it or not; else all that the options leave.
    pipeline
        Only runs of this pipeline, by its exact name.
    again
        Also those that the lake has: their files are replaced.
    dry_run
        Count the runs that would be written, and write none.
    at_once
        So many runs are written at the same time.
    """
    refuse_both(run, pipeline, since, until)
    with at.reading(connect) as reading:
        _need_lake(reading.stage)
        if run is not None:
            reading.ask("readRun", run_id=run)
            chosen = Chosen([reading.ref(run)])
        else:
            with console.status("listing runs"):
                ended = EndedRuns.chosen(reading, pipeline, since, until)
                chosen = _wanted(reading.stage, ended, again=again)
        answer = _counted(reading.stage, chosen) if dry_run else _write(reading, chosen, at_once)
    if at.as_json:
        write_json(answer)
    else:
        _show(answer)
    return 1 if answer.failed else 0


def _need_lake(stage: Stage) -> None:
    if not stage.lake_function:
        raise LocalStageError(
            f"The stage {stage.stage} has no lake.",
            "Give it one with `lake=LakeSettings(…)` in cdk/settings.py and deploy it, see "
            "docs/lake.md; `runtally export` writes files without one.",
        )


def _wanted(stage: Stage, ended: EndedRuns, *, again: bool) -> Chosen:
    there = frozenset[RunRef]() if again else in_lake(stage, ended.runs)
    refs = [run.ref for run in ended.runs if run.ref not in there]
    return Chosen(refs, there=len(there), open=ended.open)


def _counted(stage: Stage, chosen: Chosen) -> Backfilled:
    return Backfilled(
        True, stage.lake_url, len(chosen.refs), 0, chosen.there, chosen.open, 0, []
    )  # fmt: skip


def _write(reading: Reading, chosen: Chosen, at_once: int) -> Backfilled:
    runs = rows = without = 0
    failed: list[Failed] = []
    write = WriteByFunction.of(reading.stage)
    with bar() as progress, ThreadPoolExecutor(at_once) as pool:
        done = progress.add_task("runs", total=len(chosen.refs))
        for became in each_done(pool, at_once, write, chosen.refs):
            if isinstance(became, Failed):
                failed.append(became)
            else:
                runs += became > 0
                rows += became
                without += became == 0
            progress.advance(done)
    url = reading.stage.lake_url
    return Backfilled(False, url, runs, rows, chosen.there, chosen.open, without, failed)


def _show(answer: Backfilled) -> None:
    out = Console()
    show_failed(out, answer.failed)
    if answer.dry_run:
        what = f"{counted(answer.runs, 'run')} would be written"
    else:
        what = f"{counted(answer.runs, 'run')} with {counted(answer.rows, 'row')} written"
    out.print(Text(f"{what} to {answer.lake}."), soft_wrap=True)
    if answer.there:
        out.print(f"{answer.there:,} there already.", highlight=False)
    if answer.open:
        out.print(f"{answer.open:,} left out: they have not ended.", highlight=False)
    if answer.without:
        why = "they are open or deleted, have no summary yet, or calls of them have expired"
        out.print(f"{answer.without:,} left out: {why}.", highlight=False, soft_wrap=True)
    if answer.failed:
        out.print("The same command tries those that failed again, and skips the others.")
