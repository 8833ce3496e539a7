"""The commands `runtally dlq`: messages that were refused, or delivered in vain."""

import sys
import time
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import Struct
from rich.console import Console

from local.commands import LocalStageError
from local.connect import Connect, StageOptions, connect
from local.dead_letters import Letter, body_of, find, letter_of
from local.dead_letters_tables import letters_table, show_letter, summary_of
from local.dlq_reading import A_MINUTE, LIST, OneQueue, Within, meant, read_letters
from local.dlq_redrive import redrive
from local.reading import write_json

_HERE = StageOptions()

dlq = App(
    name="dlq",
    help="Dead letters: messages that were refused, or delivered in vain.",
    help_epilogue="After a fix, `runtally dlq redrive --all` moves them back to their queues.",
)
dlq.command(redrive, name="redrive")


class Shown(Struct, frozen=True):
    """A dead letter, whole. `body` is None when the bucket has it no longer."""

    letter: Letter
    attributes: dict[str, str]
    body: str | None


@dlq.command(name="list")
def list_letters(
    *,
    queue: OneQueue = None,
    reason: str | None = None,
    within: Within = A_MINUTE,
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
        found = read_letters(stage, queue, reason, within)
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
    within: Within = A_MINUTE,
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
        message = find(stage, meant(stage, queue), message_id, within.total_seconds())
        if message is None:
            raise LocalStageError(f"There is no dead letter {message_id}.", LIST)
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


def _attributes_of(message: dict[str, object]) -> dict[str, str]:
    """What the sender, a function or SQS said beside the body."""
    from_sqs: dict[str, str] = message["Attributes"]  # type: ignore[assignment]
    given: dict[str, dict[str, object]] = message.get("MessageAttributes", {})  # type: ignore[assignment]
    texts = {
        name: str(one.get("StringValue", one.get("BinaryValue"))) for name, one in given.items()
    }
    return texts | dict(sorted(from_sqs.items()))
