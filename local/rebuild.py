"""The command `runtally rebuild`: send what the bucket holds of runs through the stage again."""

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Final

from cyclopts import Parameter
from msgspec import Struct
from rich.console import Console

from functions.adapters.s3 import S3ObjectStore
from functions.adapters.sqs import SqsEventQueue
from functions.core import keys
from functions.core.keys import RunRef
from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.progress import bar
from local.reading import write_json
from local.rebuilding import Stored, content_of, is_too_old, objects_of
from local.stage import Stage
from local.tables import counted

_HERE: Final = StageOptions()
_MOST_RUNS_NAMED: Final = 3


class TooOld(Struct, frozen=True):
    """Events that ingest would refuse for their age: how many, of how many runs, and the first."""

    events: int
    runs: int
    first_runs: list[RunRef]


class Rebuilt(Struct, frozen=True):
    """How many objects were sent, of how many runs, and how many had outlived their run.

    Of those that were sent, `too_old` events were left out; an object that has no others was not.
    """

    dry_run: bool
    runs: int
    objects: int
    expired: int
    too_old: TooOld


def rebuild(
    run: str | None = None,
    /,
    *,
    tenant: Annotated[str | None, Parameter(help="Only runs of this tenant.")] = None,
    dry_run: bool = False,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Make the items of runs anew from their objects, where they are missing.

    Every object goes through the event queue as the message that it came with. What is there is
    recognised and stays; a run is kept for the stage's retention from then on. Events that are
    older than that by now are left out, since ingest refuses them. Tenants, API keys and
    invocations have no objects.

    Parameters
    ----------
    run
        Only this run, of the tenant that `--tenant` names.
    dry_run
        Read and count the objects, and send none.
    """
    if run is not None and tenant is None:
        raise LocalStageError("A run needs `--tenant`.", "Ids of runs are a tenant's own.")
    with at.connected(connect) as stage:
        found = objects_of(stage.s3, stage.bucket_name, _prefix(tenant, run))
        answer = _send(stage, found, dry_run=dry_run)
    if at.as_json:
        write_json(answer)
        return
    out = Console()
    what = f"{counted(answer.objects, 'object')} of {counted(answer.runs, 'run')}"
    out.print(f"{what} {'would be sent' if dry_run else 'sent'}.", highlight=False)
    if answer.expired:
        out.print(f"{answer.expired:,} left out: their runs have expired.", highlight=False)
    if answer.too_old.events:
        out.print(_told(answer.too_old), style="yellow", highlight=False, markup=False)
    if answer.objects and not dry_run:
        out.print("`runtally reconcile --since …` tells when all is counted.", style="dim")


def _prefix(tenant: str | None, run: str | None) -> str:
    if tenant is None:
        return keys.RUN_OBJECTS
    if run is None:
        return f"{keys.RUN_OBJECTS}{tenant}/"
    return keys.objects_of_run(RunRef(tenant, run))


def _send(stage: Stage, found: Iterable[Stored], *, dry_run: bool) -> Rebuilt:
    queue = SqsEventQueue(
        stage.sqs, stage.event_queue_url, S3ObjectStore(stage.s3, stage.bucket_name)
    )
    # An object outlives its run by some days; ingest would refuse its events as too old.
    horizon = datetime.now(UTC) - timedelta(days=stage.retention_days)
    too_old = partial(is_too_old, now_ns=time.time_ns(), retention_days=stage.retention_days)
    runs: set[RunRef] = set()
    with_old: dict[RunRef, int] = {}
    objects = expired = 0
    with bar() as progress:
        task = progress.add_task("objects", total=None)
        for stored in found:
            if stored.stored_at < horizon:
                expired += 1
                continue
            content = content_of(stage.s3, stage.bucket_name, stored, too_old)
            if content.too_old:
                with_old[stored.ref] = with_old.get(stored.ref, 0) + content.too_old
            if content.body is None:
                continue
            if not dry_run:
                queue.send_events(stored.ref.tenant_id, content.body)
            runs.add(stored.ref)
            objects += 1
            progress.advance(task)
    return Rebuilt(dry_run, len(runs), objects, expired, _too_old(with_old))


def _too_old(by_run: Mapping[RunRef, int]) -> TooOld:
    return TooOld(sum(by_run.values()), len(by_run), list(by_run)[:_MOST_RUNS_NAMED])


def _told(too_old: TooOld) -> str:
    events, runs = counted(too_old.events, "event"), counted(too_old.runs, "run")
    first = ", ".join("/".join(run) for run in too_old.first_runs)
    more = ", …" if too_old.runs > len(too_old.first_runs) else ""
    return f"{events} of {runs} left out, older than the stage's retention: {first}{more}."
