"""The command line `runtally`: a whole stage on this machine, without account or Docker."""

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape

from local import replay as replaying
from local.commands import LocalStageError
from local.demo import mismatches, run_demo, send_and_wait
from local.paths import STATE
from local.picture import save_picture
from local.progress import console
from local.recordings import Recording
from local.results import RunResult
from local.running import bring_down, bring_up, find_running
from local.sending import send
from local.stage import Running, output_name
from local.tables import counted, table_of

_out = Console()
_commands = App(
    name="runtally",
    help="Record LLM agent runs end to end on an embedded AWS: no account, no Docker.",
    default_parameter=Parameter(negative=""),
    help_epilogue="Start with `runtally demo`, or `runtally up` and then `runtally replay FILE`.",
)


def app() -> None:
    """Run the command of sys.argv. What cannot work ends with its reason and exit code 1."""
    # As Ctrl-C does: leaving through the `with` blocks is what ends the embedded AWS.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(_commands(sys.argv[1:]))
    except LocalStageError as error:
        console.print(f"[red]✗[/] {escape(error.failed)}", highlight=False)
        console.print(str(error).removeprefix(error.failed).strip(), markup=False, highlight=False)
        sys.exit(1)


@_commands.command
def up(*, auth: bool = False) -> None:
    """Start the embedded AWS, deploy the stacks to it, and leave it running.

    Says where it is; when it is up already, does nothing more.

    Parameters
    ----------
    auth
        Enforce the IAM policies of the functions' roles, as AWS does.
    """
    running, started = bring_up(auth=auth)
    _out.print("[green]The stage is up.[/]" if started else "[green]The stage is up already.[/]")
    _describe(running)


@_commands.command
def down() -> None:
    """End the stage that `runtally up` left running, and forget what it stored."""
    _out.print("The stage is down." if bring_down() else "There is no stage up.")


@_commands.command
def replay(
    *files: Path,
    now: bool = False,
    speed: float = 0,
    run_id: str | None = None,
    tenant: str | None = None,
    wait: bool = False,
) -> int:
    """Send recorded runs through the real queue of the stage that is up.

    Sending a run again changes nothing: its ids say that it is there. Give it another id with
    `--run-id`, or another tenant with `--tenant`, for it to count again.

    Parameters
    ----------
    files
        Recordings (.jsonl, .jsonl.gz), or trajectories of mini-swe-agent, SWE-agent, tau-bench and
        Who&When.
    now
        Move all times, so that each run ends now.
    speed
        Send as time went, so many times as fast; 0: at once.
    run_id
        The id to give to the run. The files must hold just one.
    tenant
        The tenant to send as.
    wait
        Wait for the summaries, show them, and compare them with the files.
    """
    running = find_running()
    if running is None:
        raise LocalStageError("There is no stage up.", "Start one with `runtally up`.")
    if not files:
        raise LocalStageError("No file was given.", "See `runtally replay --help`.")
    recorded = [recording for file in files for recording in replaying.load(file)]
    if run_id and len(recorded) != 1:
        failed = f"`--run-id` is for one run, but the files hold {len(recorded)}."
        raise LocalStageError(failed, "Send them without it, or one by one.")
    if now:
        recorded = [replaying.ending_now(recording) for recording in recorded]
    if run_id or tenant:
        recorded = [replaying.addressed(recording, tenant, run_id) for recording in recorded]
    return _send(running, recorded, speed=speed, wait=wait)


@_commands.command
def demo(
    *files: Path,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    picture: Path | None = None,
) -> int:
    """Do it all once: start, deploy, send the sample runs, show what became of them, tear down.

    Fails when a run's totals are not those that its recording adds up to.

    Parameters
    ----------
    files
        Recordings or trajectories to send instead of the samples.
    as_json
        Print one JSON object as the last line.
    picture
        Also draw the first and the last run's table into this file, as SVG.
    """
    shown = run_demo(files)
    if picture:
        save_picture(shown.results, picture)
    exit_code = _show(shown.results, shown.mismatches)
    if not exit_code:
        _out.print(
            f"{shown.write_units_per_step} write units a step, {shown.seconds:.0f} s.\n"
            "Next: `runtally up` leaves a stage running, `runtally replay FILE` sends to it;\n"
            "local/samples/programs shows agents that record themselves."
        )
    if as_json:
        sys.stdout.write(json.dumps(shown.as_json()) + "\n")
    return exit_code


def _send(running: Running, recorded: list[Recording], *, speed: float, wait: bool) -> int:
    if not wait:
        send(running.stage, recorded, speed=speed)
        _out.print(f"Sent {counted(len(recorded), 'run')}. `--wait` shows what becomes of them.")
        return 0
    results = send_and_wait(running.stage, recorded, within_s=180, speed=speed)
    expected = [replaying.expected(recording) for recording in recorded]
    return _show(results, mismatches(results, expected))


def _show(results: Sequence[RunResult], wrong: Sequence[str]) -> int:
    """A table a run, and whether each adds up to what its file does; the exit code."""
    for result in results:
        _out.print(table_of(result), "")
    for mismatch in wrong:
        console.print(f"[red]✗[/] {escape(mismatch)}", highlight=False)
    if not wrong:
        _out.print(f"[green]{counted(len(results), 'run')}: equal to the sums over the files.[/]")
    return 1 if wrong else 0


def _describe(running: Running) -> None:
    stage, access = running.stage, running.stage.access
    shown = {
        "endpoint": access.endpoint,
        "access key": f"{access.access_key_id} / {access.secret_access_key}",
        **{
            output_name(field): getattr(stage, field)
            for field in ("table_name", "bucket_name", "event_queue_url")
        },
        "log": running.folder / "log.txt",
        "all of it": STATE,
    }
    for name, value in shown.items():
        _out.print(f"  {name:14} {value}", highlight=False, soft_wrap=True)
    _out.print("Next: `runtally replay FILE --wait`; `runtally down` ends it.")
