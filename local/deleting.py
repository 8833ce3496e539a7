"""The command `runtally delete`: a run, or a tenant with all that is its own."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from typing import Annotated, Final

import msgspec
from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.dynamodb_lake import DynamoDBLakeNotes
from functions.adapters.dynamodb_tenant_deletion import DynamoDBTenantData
from functions.adapters.s3_lake_versions import S3LakeVersions
from functions.adapters.s3_versions import S3Versions
from functions.adapters.sqs import SqsErasures
from functions.api import shapes
from functions.core import times
from functions.core.errors import Rejected
from functions.core.lake_ports import Lake
from functions.core.tenant_deletion import SEGMENTS, DeleteTenant, TenantErasure
from local import moments
from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.progress import console
from local.reading import TenantOptions, write_json
from local.stage import Stage
from local.tables import counted, plain_table, said
from local.waiting import Clock, Sleep

_TENANT: Final = TenantOptions()
_STAGE: Final = StageOptions()
_POLL_S: Final = 5
_NO_TENANT: Final = "`runtally tenants list` shows those that there are."
_UNDER_WAY: Final = "What was under way may still arrive in the next minutes"
_UNASKED: Final = "Nothing was deleted: `--yes` says that you mean it."

delete = App(
    name="delete",
    help="Delete a run or a tenant, with everything that was recorded of it, for good.",
    help_epilogue="Dead letters are found by no run: they expire by themselves after 14 days.",
)

Wait = Annotated[
    bool, Parameter(help="Wait until it is finished: ten minutes at least on a deployed stage.")
]


class TenantReceipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one command did; `unfinished` runs are still being erased."""

    tenant_id: str
    status: str
    keys: int
    runs: int
    unfinished: int
    invocations: int
    objects: int
    versions: int
    locked_until: str | None = None


@delete.command(name="run")
def delete_run(
    run: str,
    /,
    *,
    wait: Wait = False,
    at: TenantOptions = _TENANT,
    connect: Connect = connect,
    sleep: Sleep = time.sleep,
) -> None:
    """Delete a run: gone at once for every reader, erased in the minutes that follow.

    Repeating it shows the receipt as it is by then.

    Parameters
    ----------
    run
        The run, by its id.
    """
    with at.reading(connect) as reading:
        receipt: shapes.Deletion = reading.ask("deleteRun", run_id=run)
        with console.status(f"erasing {run}"):
            while wait and receipt.status != "finished":
                sleep(_POLL_S)
                receipt = reading.ask("readDeletion", run_id=run)
    if at.as_json:
        write_json(receipt)
        return
    _show_run(receipt)


@delete.command(name="tenant")
def delete_tenant(  # noqa: PLR0913 - one an option
    tenant: Annotated[str, Parameter(name="ID")],
    /,
    *,
    yes: bool = False,
    wait: Wait = False,
    at: StageOptions = _STAGE,
    connect: Connect = connect,
    sleep: Sleep = time.sleep,
    clock: Clock = time.time_ns,
) -> int:
    """Delete a tenant: its API keys, runs, invocations, objects, and then the tenant.

    Stop its workers before: what they still send is dropped. It may be ended at any moment; the
    same command goes on. It fails while something is left.

    Parameters
    ----------
    tenant
        The tenant, by its id.
    yes
        That it is meant: there is no way back.
    """
    if not yes:
        raise LocalStageError(f"This deletes all that the tenant {tenant} has.", _UNASKED)
    with at.connected(connect) as stage, ThreadPoolExecutor(SEGMENTS) as pool:
        deletion = _deletion_on(stage, clock, pool)
        with console.status(f"deleting {tenant}") as status:

            def told(erasure: TenantErasure) -> None:
                status.update(f"deleting {tenant}: {_in_words(erasure)}")

            try:
                whole = _repeated(deletion, tenant, told, sleep if wait else None)
            except Rejected as rejected:
                raise LocalStageError(f"Refused: {rejected.detail}.", _NO_TENANT) from None
    if not whole.existed:
        raise LocalStageError(f"There is no tenant {tenant}.", _NO_TENANT)
    _show_tenant(whole, as_json=at.as_json)
    return 0 if whole.finished else 1


def _repeated(
    deletion: DeleteTenant,
    tenant: str,
    told: Callable[[TenantErasure], None],
    sleep: Sleep | None,
) -> TenantErasure:
    """One call, or, with `sleep`, as many as it takes; what they did together."""
    whole = deletion(tenant, told)
    while sleep and whole.existed and not whole.finished:
        sleep(_POLL_S)
        if deletion.unfinished(tenant):
            continue
        more = deletion(tenant, told)
        more.existed = True
        # Runs are begun again until they are gone from the index.
        more.runs = max(whole.runs, more.runs)
        more.locked_until = more.locked_until or whole.locked_until
        for name in ("keys", "invocations", "objects", "versions"):
            setattr(more, name, getattr(whole, name) + getattr(more, name))
        whole = more
    return whole


def _deletion_on(stage: Stage, clock: Clock, pool: Executor) -> DeleteTenant:
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    lake = None
    if stage.lake_bucket:
        objects = S3LakeVersions(stage.s3, stage.lake_bucket, pool.map)
        lake = Lake(DynamoDBLakeNotes(table), objects)
    return DeleteTenant(
        DynamoDBTenantData(table),
        S3Versions(stage.s3, stage.bucket_name),
        DynamoDBTombstones(table),
        SqsErasures(stage.sqs, stage.erasure_queue_url),
        clock,
        stage.retention_days,
        stage.quiet_s,
        pool.map,
        lake,
    )


def _show_run(receipt: shapes.Deletion) -> None:
    table = plain_table()
    for name in ("deleted", "items", "objects", "versions", "finished"):
        table.add_column(name)
    finished = receipt.finished_at
    table.add_row(
        moments.local_time(receipt.requested_at),
        *(f"{number:,}" for number in (receipt.items, receipt.objects, receipt.versions)),
        "not yet" if finished is None else moments.local_time(finished),
    )
    out = Console()
    out.print(table)
    if finished is None:
        said_of = f"{receipt.run_id} is gone for its readers, and being erased."
        out.print(said(f"{said_of} Look again, or `--wait`."), soft_wrap=True)
    _show_lock(receipt.locked_until, out)


def _show_lock(locked_until: str | None, out: Console) -> None:
    if locked_until is not None:
        until = moments.local_time(locked_until)
        text = f"Until {until} a lock holds its files in the lake, where no reader finds them."
        out.print(said(text), soft_wrap=True)


def _show_tenant(erasure: TenantErasure, *, as_json: bool) -> None:
    locked = erasure.locked_until
    locked_until = None if locked is None else times.text_of(locked)
    if as_json:
        shown = {name: value for name, value in asdict(erasure).items() if name != "existed"}
        status = "finished" if shown.pop("finished") else "running"
        write_json(TenantReceipt(status=status, **shown | {"locked_until": locked_until}))
        return
    table: Table = plain_table()
    numbers = ("keys", "runs", "unfinished", "invocations", "objects", "versions")
    for name in numbers:
        table.add_column(name, justify="right")
    table.add_row(*(f"{getattr(erasure, name):,}" for name in numbers))
    out = Console()
    out.print(table)
    if erasure.finished:
        left = "Nothing else" if locked_until else "Nothing"
        _show_lock(locked_until, out)
        out.print(said(f"{left} is left of {erasure.tenant_id}."), soft_wrap=True)
        return
    why = "Runs are being erased" if erasure.runs or erasure.unfinished else _UNDER_WAY
    out.print(f"{why}: the same command goes on, or `--wait`.", soft_wrap=True)


def _in_words(erasure: TenantErasure) -> str:
    parts = (
        counted(erasure.runs, "run"),
        counted(erasure.invocations, "invocation"),
        counted(erasure.versions, "object"),
    )
    return ", ".join(parts)
