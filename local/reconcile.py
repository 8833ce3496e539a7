"""The command `runtally reconcile`: count runs anew, report drift, have summaries made anew."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from functions.core.keys import RunRef
from local.commands import LocalStageError
from local.connect import Connect, connect
from local.moments import Since
from local.progress import bar
from local.reading import Reading, TenantOptions, write_json
from local.reconciling import Reconciled
from local.recounting import Recounting
from local.tables import counted, said
from local.waiting import Sleep

_HERE = TenantOptions()
_WITHIN_S: Final = 120


class Reconciliation(Struct, frozen=True):
    """`exact`: every run is shown as its step items add up."""

    exact: bool
    runs: list[Reconciled]


def reconcile(  # noqa: PLR0913 - one an option
    run: str | None = None,
    /,
    *,
    since: Since = None,
    force: bool = False,
    wait: bool = False,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
    sleep: Sleep = time.sleep,
) -> int:
    """Count runs anew from their step items, and ask for a recount of those that differ.

    Fails while a run is shown otherwise than its step items add up. A run that is being recorded
    is looked at a few times: counting follows storing by a second.

    Parameters
    ----------
    run
        One run, by its id; or else give `--since`.
    force
        Ask for a recount of every run, whether it differs or not.
    wait
        Wait for the recounts, then look again.
    """
    with at.reading(connect) as reading:
        refs = [reading.ref(run_id) for run_id in _run_ids(reading, run, since)]
        recounting = Recounting.on(reading.stage, partial(sleep, 1))
        found = _reconciled(recounting, refs, force=force)
        if wait:
            found = _after_recounts(recounting, found)
    exact = all(run.shown_exactly for run in found.values())
    answer = Reconciliation(exact, list(found.values()))
    if at.as_json:
        write_json(answer)
    else:
        _show(answer)
    return 0 if answer.exact else 1


def _run_ids(reading: Reading, run: str | None, since: str | None) -> list[str]:
    """The runs that are meant. Raises LocalStageError, and NotFound for one that is not there."""
    if (run is None) == (since is None):
        advice = "Give one of them: `runtally reconcile RUN`, `runtally reconcile --since 24h`."
        raise LocalStageError("Give a run or `--since`.", advice)
    if run is None:
        return [listed.run_id for listed in reading.runs(None, **{"from": since})]
    reading.ask("readRun", run_id=run)
    return [run]


def _reconciled(
    recounting: Recounting, refs: Sequence[RunRef], *, force: bool
) -> dict[RunRef, Reconciled]:
    found: dict[RunRef, Reconciled] = {}
    with bar() as progress:
        done = progress.add_task("counted", total=len(refs))
        for ref in refs:
            if (reconciled := recounting(ref, force=force)) is not None:
                found[ref] = reconciled
            progress.advance(done)
    return found


def _after_recounts(
    recounting: Recounting, found: Mapping[RunRef, Reconciled]
) -> dict[RunRef, Reconciled]:
    """What a look at the runs finds once their summaries cover what was counted, or time is up."""
    deadline = time.monotonic() + _WITHIN_S
    settled: dict[RunRef, Reconciled] = {}
    with bar() as progress:
        done = progress.add_task("recounted", total=len(found))
        for ref, run in found.items():
            latest = recounting.settled(
                ref,
                run,
                whole=lambda latest: latest is None or latest.shown_exactly,
                late=lambda: time.monotonic() > deadline,
            )
            if latest is not None:
                settled[ref] = latest
            progress.advance(done)
    return settled


def _show(answer: Reconciliation) -> None:
    out = Console()
    for run in answer.runs:
        for drift in run.drift:
            mark = ("–", "yellow") if run.shown_exactly else ("✗", "red")
            out.print(Text.assemble(mark, said(f" {run.run_id}  {drift}")), soft_wrap=True)
    calls = counted(sum(run.calls for run in answer.runs), "call")
    out.print(f"{counted(len(answer.runs), 'run')} with {calls} counted.", highlight=False)
    asked = sum(run.recount_requested for run in answer.runs)
    if asked:
        out.print(f"{counted(asked, 'recount')} asked for.", highlight=False)
    if answer.exact:
        out.print("[green]Every run is shown exactly.[/]")
    elif asked:
        out.print("Recounts take some seconds: `--wait` waits, or look again.")
