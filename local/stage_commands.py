"""The commands `runtally up`, `down`, `replay` and `demo`: a whole stage on this machine."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from functions.api import shapes
from local import replay as replaying
from local.commands import LocalStageError
from local.demo import look_around, mismatches, run_demo, send_and_wait
from local.paths import STATE
from local.picture import save_picture
from local.progress import console
from local.reading import Reading, register, tenant_ids
from local.recordings import Recording
from local.running import bring_down, bring_up, find_running
from local.sending import send
from local.shared_budget import SharedBudget
from local.stage import Running, output_name
from local.tables import counted, phases_table


def up(
    *,
    auth: bool = False,
    page: Annotated[bool, Parameter(negative="--no-page", show_default=False)] = True,
) -> None:
    """Start the embedded AWS, deploy the stacks to it, serve the page, and leave it all running.

    Says where it is; when it is up already, does nothing more.

    Parameters
    ----------
    auth
        Enforce the IAM policies of the functions' roles, as AWS does.
    page
        Serve the Pipeline page; a machine that only records needs none.
    """
    running, started = bring_up(auth=auth, page=page)
    _print("[green]The stage is up.[/]" if started else "[green]The stage is up already.[/]")
    _describe(running)


def down() -> None:
    """End the stage that `runtally up` left running, and forget what it stored."""
    _print("The stage is down." if bring_down() else "There is no stage up.")


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
        Recordings (.jsonl, .jsonl.gz), trajectories of mini-swe-agent, SWE-agent, tau-bench and
        Who&When, or saved OTLP requests (protobuf as .pb or .body, JSON, an exporter's JSON lines).
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


def demo(
    *files: Path,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    picture: Path | None = None,
) -> int:
    """Do it all once: start, deploy, send the sample runs, read them back, tear down.

    Where there is a Valkey server, eight processes also share a run's budget: an embedded one
    comes along for most platforms, RUNTALLY_VALKEY_URL names yours.
    Fails when a run's totals are not those that its recording, or that budget, adds up to.

    Parameters
    ----------
    files
        Recordings or trajectories to send instead of the samples.
    as_json
        Print one JSON object as the last line.
    picture
        Also draw what it ends with into this file, as SVG.
    """

    def look(
        reading: Reading, results: Sequence[shapes.ListedRun], shared: SharedBudget | None
    ) -> None:
        look_around(Console(), reading, results, shared)
        if picture:
            save_picture(lambda out: look_around(out, reading, results, shared), picture)

    shown = run_demo(files, look)
    exit_code = _verdict(len(shown.results), shown.wrong)
    if not exit_code:
        _print(
            f"{shown.write_units_per_step} write units a step, {shown.seconds:.0f} s.\n"
            "Next: `runtally up` leaves a stage and its page running, `replay FILE` sends to it;\n"
            "local/samples/programs shows agents that record themselves."
        )
    if as_json:
        sys.stdout.write(json.dumps(shown.as_json()) + "\n")
    return exit_code


def key_command(tenants: Sequence[str]) -> str:
    """What makes the key that the page asks for; the samples' tenant when there is none yet."""
    match tenants:
        case []:
            return "runtally tenants create demo && runtally keys create demo --name page"
        case [only]:
            return f"runtally keys create {only} --name page"
        case _:
            return "runtally keys create TENANT --name page"


def _send(running: Running, recorded: list[Recording], *, speed: float, wait: bool) -> int:
    if not wait:
        register(running.stage, (recording.tenant_id for recording in recorded))
        send(running.stage, recorded, speed=speed)
        sent = counted(len(recorded), "run")
        _print(f"Sent {sent}. `runtally runs` shows what becomes of them; `--wait` waits for it.")
        return 0
    results = send_and_wait(running.stage, recorded, within_s=180, speed=speed)
    for run in results:
        Console().print(phases_table(run, run.totals, run.phases), "")
    expected = [replaying.expected(recording) for recording in recorded]
    return _verdict(len(results), mismatches(results, expected))


def _verdict(runs: int, wrong: Sequence[str]) -> int:
    """Whether each run adds up to what its file does; the exit code."""
    for mismatch in wrong:
        console.print(f"[red]✗[/] {escape(mismatch)}", highlight=False)
    if not wrong:
        _print(f"[green]{counted(runs, 'run')}: equal to the sums over the files.[/]")
    return 1 if wrong else 0


def _describe(running: Running) -> None:
    stage, access = running.stage, running.access
    if running.page is not None:
        _print(f"  {'open':14} [bold cyan]{running.page.address}[/]")
        _print(f"  {'with a key':14} [bold]{key_command(tenant_ids(stage))}[/]")
    shown = {
        "endpoint": access.endpoint,
        "access key": f"{access.access_key_id} / {access.secret_access_key}",
        **{
            output_name(field): getattr(stage, field)
            for field in ("table_name", "bucket_name", "event_queue_url", "api_url")
        },
        "log": running.folder / "log.txt",
        "all of it": STATE,
    }
    for name, value in shown.items():
        _print(f"  {name:14} {value}")
    _print("Next: `runtally replay FILE`, `runtally runs`; `runtally down` ends it.")


def _print(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True)
