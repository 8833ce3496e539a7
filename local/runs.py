"""The commands `runtally runs`, `show` and `payload`: what a tenant's runs came to."""

import sys
import time
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from msgspec import Raw
from rich.console import Console

from functions.api import shapes
from functions.api.pages import Page
from local.commands import LocalStageError
from local.connect import Connect, connect
from local.moments import Since, Until
from local.reading import TenantOptions, write_json, write_json_rows
from local.show import show_run
from local.tables import runs_table

_HERE = TenantOptions()
_UNREADABLE = {
    "none": "is none: it was recorded without one",
    "missing": "is missing: its object is gone from the bucket",
    "corrupt": "is corrupt: its object holds other bytes than were recorded",
}


def runs(  # noqa: PLR0913 - one an option
    *,
    status: Literal["running", "succeeded", "failed", "cancelled", "stale"] | None = None,
    pipeline: str | None = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, Parameter(help="So many, at most.", validator=Number(gte=1))] = 20,
    every: Annotated[bool, Parameter(name="--all", help="All of them, without a limit.")] = False,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """List runs, newest first, with what they came to so far.

    Parameters
    ----------
    status
        Only runs of this status.
    pipeline
        Only runs of this pipeline, by its exact name.
    """
    wanted = {"status": status, "pipeline": pipeline, "from": since, "to": until}
    with at.reading(connect) as reading:
        listed = reading.runs(None if every else limit, **wanted)
        if at.as_json:
            write_json_rows(None, "runs", listed, lambda: listed.cursor)
            return
        out = Console()
        table = runs_table(listed, time.time_ns(), out.width)
    if not table.row_count:
        out.print("No such runs. Programs record them; `runtally replay FILE` sends recorded ones.")
        return
    out.print(table)
    if listed.cursor is not None:
        out.print("There are more: `--limit`, `--all`, or narrow it with `--since`.", style="dim")


def show(run: str, /, *, at: TenantOptions = _HERE, connect: Connect = connect) -> None:
    """Show one run: its phases, slowest and dearest calls, errors, result and last log lines.

    Every call is read for that, a page at a time; with `--json` all of them are printed.

    Parameters
    ----------
    run
        The run's id, as `runtally runs` lists it.
    """
    with at.reading(connect) as reading:
        page: Page = reading.ask("readRun", run_id=run)
        if at.as_json:
            write_json_rows(page.head, page.name, (row.value for row in page.rows))
            return
        show_run(Console(), page)


def payload(  # noqa: PLR0913 - one an option
    run: str,
    step: str,
    /,
    *,
    event: bool = False,
    pretty: bool = False,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> int:
    """Print the payload of a call, byte for byte as it was sent; fails when it cannot be had.

    Parameters
    ----------
    run
        The run's id, as `runtally runs` lists it.
    step
        The call's step id, as `runtally show` names it.
    event
        The whole event that recorded the call, instead of its payload alone.
    pretty
        Indent it, for reading; no digit and no character changes.
    """
    with at.reading(connect) as reading:
        found = reading.ask("readEvent" if event else "readPayload", run_id=run, step_id=step)
    answer: shapes.Event | shapes.Payload = found.answer
    state = answer.event_state if isinstance(answer, shapes.Event) else answer.payload_state
    content = answer.event if isinstance(answer, shapes.Event) else answer.payload
    if at.as_json:
        write_json(answer)
        return 0 if state == "ok" else 1
    if not isinstance(content, Raw):
        failed = f"The {'event' if event else 'payload'} of {step} {_UNREADABLE[state]}."
        raise LocalStageError(failed, f"`runtally show {run}` shows what the table has of the run.")
    _write_raw(bytes(content), pretty=pretty)
    return 0


def _write_raw(content: bytes, *, pretty: bool) -> None:
    """As it is; a terminal alone gets a line feed behind it, which is no part of it."""
    if pretty:
        content = msgspec.json.format(content)
    sys.stdout.buffer.write(content)
    if pretty or sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()
