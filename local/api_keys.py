"""The command `runtally keys`: the API keys of tenants."""

import sys
import time
from datetime import timedelta
from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from rich.markup import escape
from rich.table import Table

from functions.core import times
from functions.core.tenants import ApiKey, IssuedKey, KeyStatus
from local.connect import Connect, StageOptions, connect
from local.managing import managing, moment, show, tell, write_json
from local.progress import console

_HERE: Final = StageOptions()
_COLOURS = {KeyStatus.ACTIVE: "green", KeyStatus.REVOKED: "red", KeyStatus.EXPIRED: "yellow"}

keys = App(
    name="keys",
    help="The API keys of a tenant: `Authorization: Bearer rt_…` on every request.",
    help_epilogue="A key is shown once, when it is made; the stage keeps only its hash.",
)


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
    with managing(at, connect) as manage:
        found = manage.list_keys(tenant)
    now_ns = time.time_ns()
    if at.as_json:
        write_json([_json_of_key(key, now_ns) for key in found])
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
            moment(key.created_at),
            moment(key.ends_at),
        )
    show(table, f"No keys yet: `runtally keys create {tenant} --name NAME` makes one.")


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
    with managing(at, connect) as manage:
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
    with managing(at, connect) as manage:
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
    with managing(at, connect) as manage:
        key = manage.revoke_key(tenant, key_id)
    if at.as_json:
        write_json(_json_of_key(key, time.time_ns()))
        return
    tell(f"[green]The key {key_id} ({escape(key.name)}) holds no longer.[/]")


def _hand_over(issued: IssuedKey, *, as_json: bool) -> None:
    """The secret alone goes to standard output, so that a script can take it from there."""
    if as_json:
        write_json(_json_of_key(issued.key, time.time_ns()) | {"api_key": issued.secret})
        return
    sys.stdout.write(issued.secret + "\n")
    said = f"Key {issued.key.key_id} of {issued.key.tenant_id}: keep it, it is not shown again."
    console.print(said, highlight=False, soft_wrap=True)


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
