"""The command `runtally dlq redrive`: dead letters go back to the queue that they were sent to."""

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Final, TextIO

from cyclopts import Parameter
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import Progress, TaskID

from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.dead_letters import Letter, Survey
from local.dead_letters_redrive import Moved, Redrive
from local.dead_letters_tables import letters_table, summary_of
from local.dlq_reading import A_MINUTE, LIST, OneQueue, Within, meant, read_letters
from local.progress import bar, console
from local.queues import Queue
from local.reading import write_json
from local.tables import counted
from local.waiting import Sleep

_HERE = StageOptions()
_MOST_IDS_NAMED: Final = 3
_AGAIN: Final = "Run it again for the rest."
_UNREAD: Final = (
    "Not all letters could be read in time. Among the others may be some that were refused for "
    "what they say, and would be again."
)


class Redriven(Struct, frozen=True):
    """`wanted` letters were found; with `dry_run` none was moved."""

    dry_run: bool
    wanted: int
    refused: int
    queues: list[Moved]


def redrive(  # noqa: PLR0913 - one an option
    *ids: Annotated[str, Parameter(name="ID")],
    every: Annotated[bool, Parameter(name="--all", help="All dead letters.")] = False,
    reason: str | None = None,
    queue: OneQueue = None,
    dry_run: bool = False,
    yes: bool = False,
    within: Within = A_MINUTE,
    sleep: Sleep = time.sleep,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> int:
    """Move dead letters back to the queue that they were sent to, unchanged.

    What was stored before is recognised, so that moving one twice, or too many, does no harm. Fails
    when some of them could not be moved.

    Parameters
    ----------
    ids
        As `runtally dlq list` names them.
    reason
        With `--all`: only those that were refused for this reason; `none` for those delivered in
        vain.
    dry_run
        Say what would be moved, and move nothing.
    yes
        Move what was refused, or may have been, without asking.
    """
    if bool(ids) == every or (reason and not every):
        advice = "`runtally dlq redrive ID…`, or `--all`, which `--reason` narrows."
        raise LocalStageError("Give ids or `--all`.", advice)
    with at.connected(connect) as stage:
        found = read_letters(stage, queue, reason, within, set(ids))
        _need_all(ids, found)
        refused = [letter for letter in found.letters if letter.reason]
        # SQS would move what is refused again and comes back; by ids, each goes once.
        by_sqs = every and reason is None and not refused
        unread = _UNREAD if by_sqs and not found.complete else None
        warning = _warning(refused) if refused else unread
        if warning:
            console.print(warning, highlight=False)
        if warning and not dry_run and not yes and not agreed(sys.stdin):
            raise LocalStageError("Nothing was moved.", "Give `--yes` if you mean it.")
        moved: list[Moved] = []
        if not dry_run:
            by = Redrive(stage, within.total_seconds(), sleep)
            moved = _move(by, meant(stage, queue), found, by_sqs=by_sqs)
    answer = Redriven(dry_run, len(found.letters), len(refused), moved)
    if at.as_json:
        write_json(answer)
    else:
        _tell(answer, found, all_told=found.complete or by_sqs)
    # What SQS moves it moves whole, or says why not, however much of it was read before.
    whole = dry_run or found.complete or by_sqs or ids
    return 1 if any(one.why_not for one in moved) or not whole else 0


def agreed(terminal: TextIO) -> bool:
    """Whether the person there says yes; where there is nobody, nobody does."""
    if not terminal.isatty():
        return False
    console.print("Move them all the same? [y/N] ", end="", markup=False)
    return terminal.readline().strip().lower() in {"y", "yes"}


def _need_all(ids: Sequence[str], found: Survey) -> None:
    missing = sorted(set(ids) - {letter.message_id for letter in found.letters})
    if missing:
        some = ", ".join(missing[:_MOST_IDS_NAMED])
        failed = f"{counted(len(missing), 'letter')} not found: {some}."
        raise LocalStageError(f"{failed} Nothing was moved.", LIST)


def _warning(refused: Sequence[Letter]) -> str:
    by_reason = Counter(letter.reason for letter in refused)
    reasons = ", ".join(f"{reason} {number:,}" for reason, number in by_reason.most_common())
    return (
        f"{counted(len(refused), 'letter')} refused for what they say ({reasons}). Unless the "
        "stage was changed since, they will be refused again, and be dead letters under new ids."
    )


def _move(by: Redrive, of: Sequence[Queue], found: Survey, *, by_sqs: bool) -> list[Moved]:
    """Queue by queue. All of a queue are moved by SQS where it can, also those not seen here.

    Raises LocalStageError when it is interrupted, and says how many were moved by then.
    """
    with bar() as progress:
        try:
            return list(_each_moved(by, of, found, progress, by_sqs=by_sqs))
        except (KeyboardInterrupt, SystemExit) as end:
            so_far = int(sum(task.completed for task in progress.tasks))
            failed = f"Interrupted: {counted(so_far, 'letter')} moved back."
            if isinstance(end, SystemExit):  # it says by itself with what to exit
                console.print(f"{failed} {_AGAIN}", highlight=False)
                raise
            raise LocalStageError(failed, _AGAIN) from None


def _each_moved(
    by: Redrive, of: Sequence[Queue], found: Survey, progress: Progress, *, by_sqs: bool
) -> Iterator[Moved]:
    for queue in of:
        ids = [one.message_id for one in found.letters if one.queue == queue.name]
        if not ids and (found.complete or not by_sqs):
            continue
        task = progress.add_task(queue.name, total=len(ids))
        told = partial(_advance, progress, task)
        done = by.move_all(queue, len(ids), told) if by_sqs else None
        if done is None:
            done = by.move(queue, ids, told)
            if by_sqs and not found.complete and not done.why_not:
                done = replace(done, why_not="others could not be read in time")
        yield done


def _advance(progress: Progress, task: TaskID, so_far: int) -> None:
    progress.update(task, completed=so_far)


def _tell(answer: Redriven, found: Survey, *, all_told: bool) -> None:
    out = Console()
    if answer.dry_run:
        out.print(letters_table(found.letters, time.time_ns(), out.width))
        out.print(f"{summary_of(found)} None was moved.", highlight=False)
        return
    for one in answer.queues:
        out.print(f"{one.queue}: {counted(one.moved, 'letter')} moved back.", highlight=False)
        if one.why_not:
            out.print(f"  {one.why_not}.", style="yellow", highlight=False)
    if not answer.queues:
        out.print(summary_of(found), highlight=False)
    elif not all_told:
        out.print("There are more: run it again.", style="yellow")
