"""The command `runtally rebuild`: send what the bucket holds of runs through the stage again."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from functions.core import keys
from functions.core.keys import RunRef
from local import queues
from local.cloud import MOST_AT_ONCE
from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.lake_notes import restore_notes
from local.progress import bar, console
from local.reading import write_json
from local.rebuild_answer import Checked, answer_of, show
from local.rebuilding import objects_of
from local.rebuilt import Check, Wrong
from local.recounting import Recounting
from local.resending import Resending
from local.stage import Stage
from local.tables import counted
from local.waiting import Sleep, UnderWay

_HERE: Final = StageOptions()
_AT_ONCE: Final = 16
_WITHIN_S: Final = 300
_WITHIN_S_AN_OBJECT: Final = 0.1
_TOLD_EVERY: Final = 1_000
_AGAIN: Final = "The same command begins anew; what is there is recognised."


def rebuild(  # noqa: PLR0913 - one an option
    run: str | None = None,
    /,
    *,
    tenant: Annotated[str | None, Parameter(help="Only runs of this tenant.")] = None,
    dry_run: bool = False,
    no_wait: bool = False,
    within: timedelta | None = None,
    at_once: Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_AT_ONCE))] = _AT_ONCE,
    at: StageOptions = _HERE,
    connect: Connect = connect,
    sleep: Sleep = time.sleep,
) -> int:
    """Make the items of runs anew from their objects, where they are missing.

    Every object goes through the event queue as the message that it came with. What is there is
    recognised and stays; a run is kept for the stage's retention from then on. Events that are
    older than that by now are left out, since ingest refuses them. Tenants, API keys and
    invocations have no objects. Where there is a lake, its notes of which run has which files are
    made anew first, from the files.

    Then it waits, and fails for a run that has not all steps that were sent, or is shown otherwise
    than its step items add up; a recount is asked for first.

    Parameters
    ----------
    run
        Only this run, of the tenant that `--tenant` names.
    dry_run
        Read and count the objects, and send none.
    no_wait
        End when all is sent.
    within
        How long to wait at most once all is sent: 10m, 2h. Else 5 minutes, and a minute more for
        each 600 objects.
    at_once
        So many objects are sent at the same time.
    """
    if run is not None and tenant is None:
        raise LocalStageError("A run needs `--tenant`.", "Ids of runs are a tenant's own.")
    with at.connected(connect) as stage:
        unfinished, dead = queues.unfinished(stage), queues.dead_letters(stage)
        resending = Resending.on(stage, dry_run=dry_run)
        restored = 0
        if stage.lake_bucket and not dry_run:
            restored = _restore(restore_notes(stage, tenant, run, at_once))
        _send(stage, _prefix(tenant, run), resending, at_once)
        checked = None
        if not (dry_run or no_wait):
            within_s = _within_s(resending) if within is None else within.total_seconds()
            wrong = _check(resending, UnderWay(stage, unfinished, within_s, sleep))
            checked = Checked(not wrong, wrong, max(0, queues.dead_letters(stage) - dead))
    answer = answer_of(resending, restored, checked)
    if at.as_json:
        write_json(answer)
    else:
        show(answer)
    return 0 if checked is None or checked.exact else 1


def _prefix(tenant: str | None, run: str | None) -> str:
    if tenant is None:
        return keys.RUN_OBJECTS
    if run is None:
        return f"{keys.RUN_OBJECTS}{tenant}/"
    return keys.objects_of_run(RunRef(tenant, run))


def _restore(runs: Iterable[bool]) -> int:
    restored = 0
    with _interrupted(lambda: "nothing is sent yet"), bar() as progress:
        task = progress.add_task("runs in the lake", total=None)
        for is_new in runs:
            restored += is_new
            progress.advance(task)
    return restored


def _send(stage: Stage, prefix: str, resending: Resending, at_once: int) -> None:
    with _interrupted(lambda: f"{counted(resending.objects, 'object')} or a few more sent"):
        with console.status("counting objects") as status:
            total = 0
            for total, _ in enumerate(objects_of(stage.s3, stage.bucket_name, prefix), start=1):
                if total % _TOLD_EVERY == 0:
                    status.update(f"counting objects: {total:,}")
        with bar() as progress:
            task = progress.add_task("objects", total=total)
            found = objects_of(stage.s3, stage.bucket_name, prefix, resending.pass_over)
            resending.send(found, lambda: progress.advance(task), at_once)


def _within_s(resending: Resending) -> float:
    return _WITHIN_S + _WITHIN_S_AN_OBJECT * resending.objects


def _check(resending: Resending, under_way: UnderWay) -> list[Wrong]:
    wrong: list[Wrong] = []
    check = Check(Recounting.on(resending.stage, under_way.pause), under_way)
    with _interrupted(lambda: "all is sent, and not all of it checked"), bar() as progress:
        recorded = progress.add_task("recorded", total=resending.objects)
        while resending.objects and (left := under_way.messages) and not under_way.over:
            progress.update(recorded, completed=max(0, resending.objects - left))
            under_way.pause()
        progress.update(recorded, completed=resending.objects)
        checked = progress.add_task("runs checked", total=len(resending.runs))
        for ref, sent in resending.runs.items():
            if (found := check(ref, sent)) is not None:
                wrong.append(found)
            progress.advance(checked)
    return wrong


@contextmanager
def _interrupted(so_far: Callable[[], str]) -> Iterator[None]:
    """Raise LocalStageError for Ctrl-C in the `with` block, with how far it came."""
    try:
        yield
    except KeyboardInterrupt:
        raise LocalStageError(f"Interrupted: {so_far()}.", _AGAIN) from None
