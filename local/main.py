"""The command line `runtally`: its commands by group, and what it says when one cannot work."""

import os
import signal
import sys
from collections.abc import Callable

from cyclopts import App, Group, Parameter
from rich.markup import escape

from local import (
    api_keys,
    backfill,
    deleting,
    dlq,
    doctor,
    export,
    insights,
    query,
    rebuild,
    reconcile,
    runs,
    stage_commands,
    tail,
    tenants,
)
from local.commands import LocalStageError
from local.progress import console

_commands = App(
    name="runtally",
    help="Record the runs of LLM agents exactly and cheaply, and read them back.",
    default_parameter=Parameter(negative=""),
    help_epilogue="Start with `runtally demo`, or `runtally up` and then `runtally replay FILE`.",
)


def _add(group: Group, *commands: Callable[..., object] | App) -> None:
    for command in commands:
        if isinstance(command, App):
            command.group = (group,)
            _commands.command(command)
        else:
            _commands.command(command, group=group)


_add(
    Group("Local stage", help="On an embedded AWS: no account, no Docker.", sort_key=1),
    stage_commands.up,
    stage_commands.down,
    stage_commands.replay,
    stage_commands.demo,
)
_add(
    Group("Read", help="Of the local stage, or of a deployed one (`--stage`).", sort_key=2),
    runs.runs,
    runs.show,
    tail.tail,
    runs.payload,
    insights.insights,
    insights.compare,
    export.export,
    query.query,
)
_add(
    Group("Operate", help="Whether a stage works, and whether its sums are exact.", sort_key=3),
    doctor.doctor,
    reconcile.reconcile,
    dlq.dlq,
    deleting.delete,
    rebuild.rebuild,
    backfill.backfill,
)
_add(Group("Access", help="Who may use a stage's API.", sort_key=4), tenants.tenants, api_keys.keys)


def app() -> None:
    """Run the command of sys.argv. What cannot work ends with its reason and exit code 1."""
    # As Ctrl-C does: leaving through the `with` blocks is what ends the embedded AWS.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(_commands(sys.argv[1:]))
    except BrokenPipeError:
        # Whoever read our output has enough of it; what Python flushes at exit has no reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except LocalStageError as error:
        console.print(f"[red]✗[/] {escape(error.failed)}", highlight=False)
        console.print(str(error).removeprefix(error.failed).strip(), markup=False, highlight=False)
        sys.exit(1)
