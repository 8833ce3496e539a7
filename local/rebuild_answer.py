"""What `runtally rebuild` answers: what it sent of runs, left out, and what became of it."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from functions.core.keys import RunRef
from local.rebuilt import Wrong
from local.resending import Resending
from local.tables import counted, said

_MOST_RUNS_NAMED: Final = 3
_MOST_WRONG_NAMED: Final = 20
_WHAT_NOW: Final = (
    "What was refused, or failed too often, is a dead letter: `runtally dlq list` says why. Where "
    "there is none, the stage was slower than was waited for: run it again, `--within` more time."
)


class TooOld(Struct, frozen=True):
    """Events that ingest would refuse for their age: how many, of how many runs, and the first."""

    events: int
    runs: int
    first_runs: list[RunRef]


class Foreign(Struct, frozen=True):
    """Objects below the prefix that no run has: how many, and the key of the first."""

    objects: int
    first: str


class Checked(Struct, frozen=True):
    """What became of the runs that were sent; `dead_letters` is how many came meanwhile, from
    whomever."""

    exact: bool
    wrong: list[Wrong]
    dead_letters: int


class Rebuilt(Struct, frozen=True):
    """How many objects were sent, of how many runs with how many steps, and how many objects had
    outlived their run.

    Of those that were sent, `too_old` events were left out; an object that has no others was not.
    `lake_notes` is how many runs of the lake had no note of all their files, and have one now.
    `checked` is None when nobody waited.
    """

    dry_run: bool
    runs: int
    steps: int
    objects: int
    expired: int
    too_old: TooOld
    foreign: Foreign
    lake_notes: int
    checked: Checked | None


def answer_of(resending: Resending, restored: int, checked: Checked | None) -> Rebuilt:
    return Rebuilt(
        dry_run=resending.dry_run,
        runs=len(resending.runs),
        steps=sum(sent.steps for sent in resending.runs.values()),
        objects=resending.objects,
        expired=resending.expired,
        too_old=_too_old(resending.too_old),
        foreign=Foreign(resending.foreign, resending.first_foreign),
        lake_notes=restored,
        checked=checked,
    )


def _too_old(by_run: Mapping[RunRef, int]) -> TooOld:
    return TooOld(sum(by_run.values()), len(by_run), list(by_run)[:_MOST_RUNS_NAMED])


def show(answer: Rebuilt) -> None:
    out = Console()
    runs = f"{counted(answer.runs, 'run')} with {counted(answer.steps, 'step')}"
    verb = "would be sent" if answer.dry_run else "sent"
    out.print(f"{counted(answer.objects, 'object')} of {runs} {verb}.", highlight=False)
    if answer.expired:
        out.print(f"{answer.expired:,} left out: their runs have expired.", highlight=False)
    if answer.too_old.events:
        out.print(_told(answer.too_old), style="yellow", highlight=False, markup=False)
    if answer.foreign.objects:
        passed = f"{counted(answer.foreign.objects, 'object')} of no run left out: "
        out.print(said(passed + answer.foreign.first, "yellow"), soft_wrap=True)
    if answer.lake_notes:
        runs = counted(answer.lake_notes, "run")
        out.print(f"Notes of {runs} of the lake were lost, and are there again.", highlight=False)
    if answer.checked:
        _show_checked(answer.checked, out)
    elif answer.objects and not answer.dry_run:
        out.print("`runtally reconcile --since …` tells when all is counted.", style="dim")


def _show_checked(checked: Checked, out: Console) -> None:
    for wrong in checked.wrong[:_MOST_WRONG_NAMED]:
        line = f" {wrong.tenant_id}/{wrong.run_id}  {wrong}"
        out.print(Text.assemble(("✗", "red"), said(line)), soft_wrap=True)
    if (more := len(checked.wrong) - _MOST_WRONG_NAMED) > 0:
        out.print(f"… and {counted(more, 'run')} more: `--json` names all.", highlight=False)
    if checked.dead_letters:
        letters = counted(checked.dead_letters, "dead letter")
        out.print(f"{letters} came meanwhile: `runtally dlq list`.", style="yellow")
    if checked.exact:
        out.print("[green]Every run has all its steps, and is shown exactly.[/]")
    else:
        out.print(_WHAT_NOW)


def _told(too_old: TooOld) -> str:
    events, runs = counted(too_old.events, "event"), counted(too_old.runs, "run")
    first = ", ".join("/".join(run) for run in too_old.first_runs)
    more = ", …" if too_old.runs > len(too_old.first_runs) else ""
    return f"{events} of {runs} left out, older than the stage's retention: {first}{more}."
