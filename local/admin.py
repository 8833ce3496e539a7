"""The commands `runtally tenants` and `runtally keys`: who may use a stage's API."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.api.tenants import ManageTenants
from functions.core import times
from functions.core.errors import Rejected
from functions.core.tenants import ApiKey, IssuedKey, KeyStatus, Tenant
from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.progress import console
from local.stage import Stage

_HERE = StageOptions()
_COLOURS = {KeyStatus.ACTIVE: "green", KeyStatus.REVOKED: "red", KeyStatus.EXPIRED: "yellow"}

tenants = App(
    name="tenants",
    help="The customers whose runs a stage keeps apart.",
    help_epilogue="Its programs need an API key: `runtally keys create TENANT --name NAME`.",
)
keys = App(
    name="keys",
    help="The API keys of a tenant: `Authorization: Bearer rt_…` on every request.",
    help_epilogue="A key is shown once, when it is made; the stage keeps only its hash.",
)


@tenants.command(name="list")
def list_tenants(*, at: StageOptions = _HERE, connect: Connect = connect) -> None:
    """List the tenants by id. One made a moment ago may be missing."""
    with _managing(at, connect) as manage:
        found = manage.list_tenants()
    if at.as_json:
        _write_json([_json_of_tenant(tenant) for tenant in found])
        return
    table = Table("tenant", "name", "created", "retention")
    for tenant in found:
        table.add_row(
            tenant.tenant_id,
            escape(tenant.name or ""),
            _moment(tenant.created_at),
            _days(tenant.retention_days),
        )
    _show(table, "No tenants yet: `runtally tenants create ID` makes one.")


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
    with _managing(at, connect) as manage:
        tenant = manage.create_tenant(tenant_id, name)
    if at.as_json:
        _write_json(_json_of_tenant(tenant))
        return
    _print(f"[green]The tenant {tenant_id} is there.[/]")
    _print(f"Next: `runtally keys create {tenant_id} --name NAME` makes an API key for it.")


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

    A run that is still recorded is kept until it has ended or is stale.

    Parameters
    ----------
    tenant_id
        The tenant, as `runtally tenants list` names it.
    retention_days
        Days from a run's start on, fewer than the stage's; 0: as long as the stage keeps runs.
    """
    with at.connected(connect) as stage, _managing_on(stage) as manage:
        tenant = manage.set_retention(tenant_id, retention_days or None, stage.retention_days)
    if at.as_json:
        _write_json(_json_of_tenant(tenant))
        return
    _print(f"[green]The retention of {tenant_id} is {_days(tenant.retention_days)}.[/]")


@keys.command(name="list")
def list_keys(
    tenant: str,
    /,
    *,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """List a tenant's keys, newest first: their first and last characters, never the keys.

    One made a moment ago may be missing. An expired key is listed for 30 days.
    """
    with _managing(at, connect) as manage:
        found = manage.list_keys(tenant)
    now_ns = time.time_ns()
    if at.as_json:
        _write_json([_json_of_key(key, now_ns) for key in found])
        return
    table = Table("key id", "name", "key", "status", "created", "until")
    for column in table.columns:
        # A narrow terminal breaks names and times into lines; what is copied stays whole.
        column.no_wrap = column.header in {"key id", "key", "status"}
        column.overflow = "fold"
    for key in found:
        status = key.status_at(now_ns)
        table.add_row(
            key.key_id,
            escape(key.name),
            key.shown,
            f"[{_COLOURS[status]}]{status}[/]",
            _moment(key.created_at),
            _moment(key.ends_at),
        )
    _show(table, f"No keys yet: `runtally keys create {tenant} --name NAME` makes one.")


@keys.command(name="create")
def create_key(
    tenant: str,
    /,
    *,
    name: str,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Make an API key for a tenant and print it, this one time.

    Parameters
    ----------
    name
        What the key is for, such as the program that will use it.
    """
    with _managing(at, connect) as manage:
        issued = manage.create_key(tenant, name)
    _hand_over(issued, as_json=at.as_json)


@keys.command(name="rotate")
def rotate_key(
    tenant: str,
    key_id: str,
    /,
    *,
    overlap: Annotated[timedelta, Parameter(show_default=lambda _: "24h")] = timedelta(hours=24),
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Make a new key of the same name and print it; the old one holds a while longer.

    Parameters
    ----------
    key_id
        The old key, as `runtally keys list` names it.
    overlap
        For how long the old key still holds: 30m, 24h, 7d; 0s revokes it at once.
    """
    with _managing(at, connect) as manage:
        issued = manage.rotate_key(tenant, key_id, int(overlap.total_seconds()))
    _hand_over(issued, as_json=at.as_json)


@keys.command(name="revoke")
def revoke_key(
    tenant: str,
    key_id: str,
    /,
    *,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Let a key hold no longer, from the next request on. Repeating it changes nothing.

    Parameters
    ----------
    key_id
        The key, as `runtally keys list` names it.
    """
    with _managing(at, connect) as manage:
        key = manage.revoke_key(tenant, key_id)
    if at.as_json:
        _write_json(_json_of_key(key, time.time_ns()))
        return
    _print(f"[green]The key {key_id} ({escape(key.name)}) holds no longer.[/]")


@contextmanager
def _managing(at: StageOptions, connect: Connect) -> Iterator[ManageTenants]:
    with at.connected(connect) as stage, _managing_on(stage) as manage:
        yield manage


@contextmanager
def _managing_on(stage: Stage) -> Iterator[ManageTenants]:
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    try:
        yield ManageTenants(DynamoDBTenants(table), time.time_ns)
    except Rejected as rejected:
        advice = "`runtally tenants list` and `runtally keys list TENANT` show what there is."
        raise LocalStageError(f"Refused: {rejected.detail}.", advice) from None


def _hand_over(issued: IssuedKey, *, as_json: bool) -> None:
    """The secret alone goes to standard output, so that a script can take it from there."""
    if as_json:
        _write_json(_json_of_key(issued.key, time.time_ns()) | {"api_key": issued.secret})
        return
    sys.stdout.write(issued.secret + "\n")
    said = f"Key {issued.key.key_id} of {issued.key.tenant_id}: keep it, it is not shown again."
    console.print(said, highlight=False, soft_wrap=True)


def _json_of_tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "created_at": times.text_of(tenant.created_at),
        "retention_days": tenant.retention_days,
    }


def _days(days: int | None) -> str:
    return "the stage's" if days is None else f"{days} day{'s' * (days > 1)}"


def _json_of_key(key: ApiKey, now_ns: int) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "tenant_id": key.tenant_id,
        "name": key.name,
        "shown": key.shown,
        "status": key.status_at(now_ns).value,
        "created_at": times.text_of(key.created_at),
        "until": None if key.ends_at is None else times.text_of(key.ends_at),
    }


def _moment(nanoseconds: int | None) -> str:
    """UTC to the second, which is what a person compares."""
    return "" if nanoseconds is None else times.text_of(nanoseconds)[:19].replace("T", " ")


def _show(table: Table, when_empty: str) -> None:
    Console().print(table if table.row_count else when_empty)


def _print(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True)


def _write_json(shown: object) -> None:
    sys.stdout.write(json.dumps(shown) + "\n")
