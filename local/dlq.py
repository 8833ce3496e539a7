"""The commands `runtally dlq`: messages that were refused, or delivered in vain."""

import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Final, TextIO

from cyclopts import App, Parameter
from msgspec import Struct
from rich.console import Console
from rich.progress import Progress, TaskID

from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.dead_letters import Letter, Survey, body_of, find, letter_of, survey
from local.dead_letters_redrive import Moved, Redrive
from local.dead_letters_tables import letters_table, show_letter, summary_of
from local.progress import bar, console
from local.queues import Queue, queues_of
from local.reading import write_json
from local.stage import Stage
from local.tables import counted
from local.waiting import Sleep

_HERE = StageOptions()
_LIST: Final = "`runtally dlq list` shows what there is."
_MOST_IDS_NAMED: Final = 3

Within = Annotated[
    timedelta,
    Parameter(help="How long to read a queue that has many: 30s, 5m.", show_default=lambda _: "1m"),
]
OneQueue = Annotated[
    str | None, Parameter(name="--queue", help="Only of this queue, as `dlq list` names it.")
]
_A_MINUTE: Final = timedelta(minutes=1)

dlq = App(
    name="dlq",
    help="Dead letters: messages that were refused, or delivered in vain.",
    help_epilogue="After a fix, `runtally dlq redrive --all` moves them back to their queues.",
)


class Shown(Struct, frozen=True):
    """A dead letter, whole. `body` is None when the bucket has it no longer."""

    letter: Letter
    attributes: dict[str, str]
    body: str | None


class Redriven(Struct, frozen=True):
    """`wanted` letters were found; with `dry_run` none was moved."""

    dry_run: bool
    wanted: int
    refused: int
    queues: list[Moved]


@dlq.command(name="list")
def list_letters(
    *,
    queue: OneQueue = None,
    reason: str | None = None,
    within: Within = _A_MINUTE,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """List dead letters, oldest first. They stay where they are, hidden for as long as it takes.

    Parameters
    ----------
    reason
        Only those that were refused for this reason; `none` for those delivered in vain.
    """
    with at.connected(connect) as stage:
        found = _survey(stage, queue, reason, within)
    if at.as_json:
        write_json(found)
        return
    out = Console()
    if found.letters:
        out.print(letters_table(found.letters, time.time_ns(), out.width))
    out.print(summary_of(found), highlight=False)


@dlq.command(name="show")
def show_one(  # noqa: PLR0913 - one an option
    message_id: Annotated[str, Parameter(name="ID")],
    /,
    *,
    raw: bool = False,
    queue: OneQueue = None,
    within: Within = _A_MINUTE,
    at: StageOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Show a dead letter: why it is one, and what it says. It stays where it is.

    Parameters
    ----------
    message_id
        As `runtally dlq list` names it.
    raw
        Its body alone, byte for byte as it was sent.
    """
    with at.connected(connect) as stage:
        message = find(stage, _queues(stage, queue), message_id, within.total_seconds())
        if message is None:
            raise LocalStageError(f"There is no dead letter {message_id}.", _LIST)
        letter = letter_of(stage, message["Queue"], message)
        body = body_of(stage, message)
    attributes = _attributes_of(message)
    if raw:
        if body is None:
            failed = f"The body is gone from the bucket: {letter.kept_as}."
            raise LocalStageError(failed, "It expired there, or somebody deleted it.")
        sys.stdout.buffer.write(body)
        sys.stdout.flush()
    elif at.as_json:
        text = None if body is None else body.decode(errors="replace")
        write_json(Shown(letter, attributes, text))
    else:
        show_letter(Console(), letter, attributes, body)


@dlq.command(name="redrive")
def redrive(  # noqa: PLR0913 - one an option
    *ids: Annotated[str, Parameter(name="ID")],
    every: Annotated[bool, Parameter(name="--all", help="All dead letters.")] = False,
    reason: str | None = None,
    queue: OneQueue = None,
    dry_run: bool = False,
    yes: bool = False,
    within: Within = _A_MINUTE,
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
        Move what was refused without asking.
    """
    if bool(ids) == every or (reason and not every):
        advice = "`runtally dlq redrive ID…`, or `--all`, which `--reason` narrows."
        raise LocalStageError("Give ids or `--all`.", advice)
    with at.connected(connect) as stage:
        found = _survey(stage, queue, reason, within, set(ids))
        _need_all(ids, found)
        refused = [letter for letter in found.letters if letter.reason]
        if refused:
            console.print(_warning(refused), highlight=False)
        if refused and not dry_run and not yes and not agreed(sys.stdin):
            raise LocalStageError("Nothing was moved.", "Give `--yes` if you mean it.")
        moved: list[Moved] = []
        if not dry_run:
            by = Redrive(stage, within.total_seconds(), sleep)
            # SQS would move what is refused again and comes back; by ids, each goes once.
            by_sqs = every and reason is None and not refused
            moved = _move(by, _queues(stage, queue), found, by_sqs=by_sqs)
    answer = Redriven(dry_run, len(found.letters), len(refused), moved)
    if at.as_json:
        write_json(answer)
    else:
        _tell(answer, found)
    return 1 if any(one.why_not for one in moved) or not (dry_run or found.complete or ids) else 0


def agreed(terminal: TextIO) -> bool:
    """Whether the person there says yes; where there is nobody, nobody does."""
    if not terminal.isatty():
        return False
    console.print("Move them all the same? [y/N] ", end="", markup=False)
    return terminal.readline().strip().lower() in {"y", "yes"}


def _queues(stage: Stage, name: str | None) -> list[Queue]:
    """The queues that are meant. Raises LocalStageError for one that is not there."""
    there = queues_of(stage)
    meant = [queue for queue in there if name in {None, queue.name}]
    if not meant:
        known = ", ".join(queue.name for queue in there)
        raise LocalStageError(f"There is no queue {name}.", f"The stage has {known}.")
    return meant


def _survey(
    stage: Stage,
    queue: str | None,
    reason: str | None,
    within: timedelta,
    ids: Collection[str] = (),
) -> Survey:
    def wanted(letter: Letter) -> bool:
        return (not ids or letter.message_id in ids) and reason in {None, letter.reason or "none"}

    with console.status("Reading dead letters"):
        return survey(stage, _queues(stage, queue), within.total_seconds(), wanted)


def _need_all(ids: Sequence[str], found: Survey) -> None:
    missing = sorted(set(ids) - {letter.message_id for letter in found.letters})
    if missing:
        some = ", ".join(missing[:_MOST_IDS_NAMED])
        failed = f"{counted(len(missing), 'letter')} not found: {some}."
        raise LocalStageError(f"{failed} Nothing was moved.", _LIST)


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
        except KeyboardInterrupt:
            so_far = int(sum(task.completed for task in progress.tasks))
            failed = f"Interrupted: {counted(so_far, 'letter')} moved back."
            raise LocalStageError(failed, "Run it again for the rest.") from None


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
        yield done or by.move(queue, ids, told)


def _advance(progress: Progress, task: TaskID, so_far: int) -> None:
    progress.update(task, completed=so_far)


def _tell(answer: Redriven, found: Survey) -> None:
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
    elif not found.complete:
        out.print("There are more: run it again.", style="yellow")


def _attributes_of(message: dict[str, object]) -> dict[str, str]:
    """What the sender, a function or SQS said beside the body."""
    from_sqs: dict[str, str] = message["Attributes"]  # type: ignore[assignment]
    given: dict[str, dict[str, object]] = message.get("MessageAttributes", {})  # type: ignore[assignment]
    texts = {
        name: str(one.get("StringValue", one.get("BinaryValue"))) for name, one in given.items()
    }
    return texts | dict(sorted(from_sqs.items()))
