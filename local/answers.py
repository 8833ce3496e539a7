"""Answers to SQL as a table, as CSV and as JSON; money keeps its digits in each of them."""

import csv
import json
import math
import sys
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from rich.console import Console

from functions.core.model import EXACT
from local.commands import LocalStageError
from local.querying import Answer
from local.tables import counted, plain_table, said

_ROWS_SHOWN: Final = 1_000
_ROOM_OF_ANOTHER: Final = 12
_NUMBERS: Final = ("BIGINT", "INTEGER", "HUGEINT", "DECIMAL", "DOUBLE", "FLOAT", "SMALLINT")


def write_table(answer: Answer) -> None:
    """As many rows as somebody may read; says so when there are more."""
    out = Console()
    table = plain_table()
    rows = [
        ["" if v is None else _text(v) for v in row] for row in islice(answer.rows, _ROWS_SHOWN)
    ]
    ids = [n for n, (name, _) in enumerate(answer.columns) if name.endswith("_id")]
    # An id is copied, so that it stays in one line, unless ids take the others' room.
    widest = sum(max((len(row[n]) for row in rows), default=0) for n in ids)
    room = _ROOM_OF_ANOTHER * (len(answer.columns) - len(ids))
    for n, (name, kind) in enumerate(answer.columns):
        table.add_column(
            said(name),
            justify="right" if kind.lstrip("U").startswith(_NUMBERS) else "left",
            overflow="fold",
            no_wrap=n in ids and widest + room <= out.width,
        )
    for row in rows:
        table.add_row(*map(said, row))
    if not table.row_count:
        out.print("No rows.")
        return
    out.print(table)
    if next(answer.rows, None) is not None:
        more = f"The first {counted(_ROWS_SHOWN, 'row')}: `--csv` and `--json` print all of them."
        out.print(more, style="dim")


def write_csv(answer: Answer) -> None:
    """With a line of names; what is NULL is empty."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(name for name, _ in answer.columns)
    writer.writerows(["" if v is None else _text(v) for v in row] for row in answer.rows)
    sys.stdout.flush()


def write_json(answer: Answer) -> None:
    """A list of objects, written as they come; money is a string. Raises LocalStageError."""
    names = [name for name, _ in answer.columns]
    if len(set(names)) < len(names):
        advice = "Name them apart: `SELECT a.status AS of_run, b.status AS of_call …`."
        raise LocalStageError("Two columns have one name.", advice)
    out = sys.stdout
    out.write("[")
    for number, row in enumerate(answer.rows):
        value = {name: _plain(value) for name, value in zip(names, row, strict=True)}
        out.write((",\n" if number else "") + json.dumps(value, ensure_ascii=False))
    out.write("]\n")
    out.flush()


def _text(value: Any) -> str:
    plain = _plain(value)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, list | dict) else str(plain)


def _plain(value: Any) -> Any:
    """What JSON can say: times are UTC, and a number that is none is null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _as_text(value)


def _as_text(value: object) -> str:
    match value:
        case Decimal():
            return format(EXACT.normalize(value), "f")
        case datetime():
            return f"{value.replace(tzinfo=None).isoformat()}Z"
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.hex()
    return str(value)
