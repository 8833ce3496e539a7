"""Dead letters as people read them."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from functions.core.dead_letters import REFUSALS
from local import moments
from local.dead_letters import Letter, Survey
from local.tables import counted, plain_table, said

_BYTES_A_KB = 1_024
_VAIN = "delivered in vain"
_ROOM_OF_OTHERS = 36 + 40


def letters_table(letters: Sequence[Letter], now_ns: int, width: int) -> Table:
    """A line a letter; the column of queues goes first where there is no room for all."""
    names = ["id", "queue", "reason", "field", "tenant", "run", "age", "size"]
    if width < _ROOM_OF_OTHERS + 30 and len({letter.queue for letter in letters}) == 1:
        names.remove("queue")
    table = plain_table()
    for name in names:
        table.add_column(
            name,
            justify="right" if name == "size" else "left",
            overflow="fold",
            no_wrap=name in {"id", "age", "size"},
        )
    for letter in letters:
        cells = {
            "id": said(letter.message_id),
            "queue": said(letter.queue),
            "reason": said(letter.reason or _VAIN, "red" if letter.reason else "yellow"),
            "field": said(letter.field),
            "tenant": said(letter.tenant_id),
            "run": said(letter.run_id or letter.invocation_id),
            "age": Text(moments.ago(letter.sent_at, now_ns).removesuffix(" ago")),
            "size": Text(_size(letter.size)),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def summary_of(found: Survey) -> str:
    """How many, and whether that is all: SQS itself only knows about how many there are."""
    if not found.complete:
        first = f"The first {counted(len(found.letters), 'letter')}, of about {found.there:,}"
        return f"{first}: give it more time with `--within`, or look again in a minute."
    if not found.letters:
        return "No such dead letters." if found.there else "No dead letters."
    return f"{counted(len(found.letters), 'dead letter')}."


def show_letter(
    out: Console, letter: Letter, attributes: Mapping[str, str], body: bytes | None
) -> None:
    """Attributes, refusals, then the body, indented where it is JSON: no character changes."""
    shown = {
        "id": letter.message_id,
        "queue": letter.queue,
        "first sent": moments.local_time(letter.sent_at),
        "size": f"{letter.size:,} bytes",
        **({"kept as": letter.kept_as} if letter.kept_as else {}),
        **{name: text for name, text in attributes.items() if name != REFUSALS},
    }
    width = max(map(len, shown))
    for name, text in shown.items():
        out.print(Text.assemble((f"{name:{width}}  ", "dim"), said(text)), soft_wrap=True)
    for refusal in json.loads(attributes.get(REFUSALS, "[]")):
        line = f"{refusal['field'] or 'message'}: {refusal['detail']} ({refusal['reason']})"
        out.print(Text.assemble(("✗ ", "red"), said(line)), soft_wrap=True)
    out.print()
    if body is None:
        out.print("The body is gone from the bucket.", style="yellow")
        return
    for line in _lines(body):
        out.print(said(line), soft_wrap=True)


def _lines(body: bytes) -> list[str]:
    with suppress(msgspec.DecodeError, RecursionError):
        body = msgspec.json.format(body)
    return body.decode(errors="replace").split("\n")


def _size(size: int) -> str:
    return f"{size:,} B" if size < _BYTES_A_KB else f"{size / _BYTES_A_KB:,.1f} KB"
