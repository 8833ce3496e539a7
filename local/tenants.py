"""The command `runtally tenants`: the customers whose runs a stage keeps apart."""

from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from rich.markup import escape
from rich.table import Table

from functions.core import times
from functions.core.tenants import Tenant
from local.connect import Connect, StageOptions, connect
from local.expired_runs import delete_expired
from local.managing import managing, managing_on, moment, show, tell, write_json
from local.progress import bar
from local.stage import Stage
from local.tables import counted

_HERE: Final = StageOptions()

tenants = App(
    name="tenants",
    help="The customers whose runs a stage keeps apart.",
    help_epilogue="Its programs need an API key: `runtally keys create TENANT --name NAME`.",
)


@tenants.command(name="list")
def list_tenants(*, at: StageOptions = _HERE, connect: Connect = connect) -> None:
    """List the tenants by id. One made a moment ago may be missing."""
    with managing(at, connect) as manage:
        found = manage.list_tenants()
    if at.as_json:
        write_json([_json_of_tenant(tenant) for tenant in found])
        return
    table = Table("tenant", "name", "created", "retention")
    for tenant in found:
        table.add_row(
            tenant.tenant_id,
            escape(tenant.name or ""),
            moment(tenant.created_at),
            _days(tenant.retention_days),
        )
    show(table, "No tenants yet: `runtally tenants create ID` makes one.")


@tenants.command(name="create")
def create_tenant(
    tenant_id: Annotated[str, Parameter(name="ID")],
    /,
    *,
    name: str | None = None,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Make a tenant.

    Parameters
    ----------
    tenant_id
        1 to 64 of A-Z a-z 0-9 . _ - that begin with a letter or digit; it stands in the events.
    name
        What people call it.
    """
    with managing(at, connect) as manage:
        tenant = manage.create_tenant(tenant_id, name)
    if at.as_json:
        write_json(_json_of_tenant(tenant))
        return
    tell(f"[green]The tenant {tenant_id} is there.[/]")
    tell(f"Next: `runtally keys create {tenant_id} --name NAME` makes an API key for it.")


@tenants.command(name="set")
def set_tenant(
    tenant_id: Annotated[str, Parameter(name="ID")],
    /,
    *,
    retention_days: int,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Change for how long a tenant's runs are kept. The sweep deletes those that are older.

    A run that is still recorded is kept until it has ended or is stale. Runs that the stage has
    not any more, while its lake has, are deleted at once; the command may be repeated.

    Parameters
    ----------
    tenant_id
        The tenant, as `runtally tenants list` names it.
    retention_days
        Days from a run's start on, fewer than the stage's; 0: as long as the stage keeps runs.
    """
    with at.connected(connect) as stage, managing_on(stage) as manage:
        tenant = manage.set_retention(tenant_id, retention_days or None, stage.retention_days)
        begun = _delete_expired(stage, tenant)
    if at.as_json:
        write_json(_json_of_tenant(tenant) | {"deletions_begun": begun})
        return
    tell(f"[green]The retention of {tenant_id} is {_days(tenant.retention_days)}.[/]")
    if begun:
        tell(f"Being deleted from the lake: {counted(begun, 'run')} that the stage has no more.")


def _delete_expired(stage: Stage, tenant: Tenant) -> int:
    """How many deletions began of runs that only the lake has."""
    if not stage.lake_bucket or tenant.retention_days is None:
        return 0
    begun = 0
    with bar() as progress:
        task = progress.add_task("files in the lake", total=None)
        for began in delete_expired(stage, tenant.tenant_id):
            begun += began
            progress.advance(task)
    return begun


def _json_of_tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "created_at": times.text_of(tenant.created_at),
        "retention_days": tenant.retention_days,
    }


def _days(days: int | None) -> str:
    return "the stage's" if days is None else f"{days} day{'s' * (days > 1)}"
