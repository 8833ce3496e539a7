"""The command `runtally export`: what the table has of runs, as files that anyone can query."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter
from msgspec import Struct
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from functions.core.errors import NotFound, Unavailable
from functions.core.keys import RunRef
from functions.core.lake import NotEnded
from local.commands import LocalStageError
from local.connect import Connect, connect
from local.ended_runs import EndedRuns, Failed, refuse_both, show_failed
from local.export_manifest import Format, Manifest
from local.exporting import Export
from local.moments import Since, Until
from local.paths import LAKE
from local.progress import bar
from local.reading import Reading, TenantOptions, write_json
from local.tables import counted

_HERE: Final = TenantOptions()


class Exported(Struct, frozen=True):
    """Runs that were written, with how many calls; those whose files were there and had not
    changed; those that are open, which have no rows yet; those that could not be written; and
    deleted ones whose files were removed."""

    folder: str
    format: Format
    exported: int
    calls: int
    unchanged: int
    open: int
    failed: list[Failed]
    pruned: int = 0


def export(  # noqa: PLR0913 - one an option
    run: str | None = None,
    /,
    *,
    pipeline: str | None = None,
    since: Since = None,
    until: Until = None,
    into: Annotated[Path, Parameter(show_default=lambda path: path.name)] = LAKE,
    format_: Annotated[Format, Parameter(name="--format")] = "parquet",
    prune: Annotated[bool, Parameter(negative="")] = False,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> int:
    """Write a tenant's ended runs to files: every run, call and phase a row, exactly.

    Files are laid out as runs|calls|phases/tenant_id=T/day=YYYY-MM-DD/RUN, which DuckDB, Athena,
    Spark and pandas read as three tables; `runtally query` does. Run it again to go on where it was
    broken off, and to bring what is new: runs that are there and have not changed are skipped.
    Fails when a run could not be written; the others are.

    Parameters
    ----------
    run
        One run, by its id; else all that the options leave.
    pipeline
        Only runs of this pipeline, by its exact name.
    into
        The folder to write to. What was deleted from the stage stays in it, but for `--prune`.
    format_
        `parquet`, or `jsonl`: gzipped, a row a line.
    prune
        Remove the files of all runs of the tenant that were deleted from the stage.
    """
    refuse_both(run, pipeline, since, until)
    with at.reading(connect) as reading, _writing(into) as manifest:
        chosen, left_open = _chosen(reading, run, pipeline, since, until)
        with bar() as progress:
            calls = progress.add_task("calls", total=None)
            one = Export(
                reader=reading.reader,
                folder=into,
                format=format_,
                manifest=manifest,
                now_ns=time.time_ns,
                read=lambda: progress.advance(calls),
            )
            answer = _export_all(one, chosen, left_open, progress, named=run is not None)
        if prune:
            answer = msgspec.structs.replace(answer, pruned=one.prune(reading.tenant_id))
    if at.as_json:
        write_json(answer)
    else:
        _show(answer)
    return 1 if answer.failed else 0


@contextmanager
def _writing(folder: Path) -> Iterator[Manifest]:
    try:
        with Manifest.opened(folder) as manifest:
            yield manifest
    except OSError as error:
        failed = f"{folder} cannot be written: {error}."
        raise LocalStageError(failed, "Give another folder with `--into`.") from None


def _chosen(
    reading: Reading, run: str | None, pipeline: str | None, since: str | None, until: str | None
) -> tuple[list[RunRef], int]:
    """The runs that have ended, the oldest first, and how many are open, as the index says it."""
    if run is not None:
        return [reading.ref(run)], 0
    ended = EndedRuns.chosen(reading, pipeline, since, until)
    return [each.ref for each in ended.runs], ended.open


def _export_all(
    export: Export, refs: list[RunRef], left_open: int, progress: Progress, *, named: bool
) -> Exported:
    exported = calls = unchanged = 0
    failed: list[Failed] = []
    done = progress.add_task("runs", total=len(refs))
    for ref in refs:
        try:
            found = export(ref)
        except NotEnded:
            left_open += 1
        except NotFound:  # it was deleted, or expired, since it was listed
            if named:
                raise
        except (Unavailable, KeyError, ValueError, ArithmeticError) as error:
            failed.append(Failed(ref.run_id, f"{type(error).__name__}: {error}"))
        else:
            unchanged += found is None
            exported += found is not None
            calls += found or 0
        progress.advance(done)
    return Exported(
        str(export.folder), export.format, exported, calls, unchanged, left_open, failed
    )


def _show(answer: Exported) -> None:
    out = Console()
    show_failed(out, answer.failed)
    what = f"{counted(answer.exported, 'run')} with {counted(answer.calls, 'call')}"
    out.print(Text(f"{what} written to {answer.folder}."), soft_wrap=True)
    if answer.unchanged:
        out.print(f"{answer.unchanged:,} there already, and unchanged.", highlight=False)
    if answer.pruned:
        out.print(f"{counted(answer.pruned, 'deleted run')} removed.", highlight=False)
    if answer.open:
        out.print(f"{answer.open:,} left out: they have not ended.", highlight=False)
    if answer.failed:
        out.print("The same command tries those that failed again, and skips the others.")
