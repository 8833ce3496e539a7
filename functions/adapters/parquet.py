"""Rows to Parquet, by DuckDB: the only file here that knows it."""

import functools
import glob
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import duckdb
import msgspec

from functions.core.lake import Column, Row, Table

_MEMORY: Final = "256MB"
_ROWS_A_GROUP: Final = 50_000


def write_parquet(table: Table, rows: Iterable[Row], file: Path) -> int:
    """Write the rows to a file of the table's columns, and return how many there were.

    They wait in a file beside it, one a line, and DuckDB takes them in groups: memory is bounded,
    however many there are. Money and counts stay exact; a TIMESTAMP is given in nanoseconds, and
    cut to microseconds, which is what Athena reads. Raises ValueError for a row that does not fit
    the columns, OSError when the file cannot be written.
    """
    encode = msgspec.json.Encoder(enc_hook=_plain, decimal_format="string").encode
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".jsonl") as spooled:
        count = 0
        for row in rows:
            spooled.write(encode(row) + b"\n")
            count += 1
        spooled.flush()
        columns = {column.name: _spooled(column) for column in table.columns}
        selected = ", ".join(_selected(column) for column in table.columns)
        try:
            with _database().cursor() as database:
                lines = database.read_json(
                    glob.escape(spooled.name),
                    columns=columns,
                    format="newline_delimited",
                    hive_partitioning=False,  # a folder's own name may have a `=`
                )
                lines.project(selected).write_parquet(
                    str(file), compression="zstd", row_group_size=_ROWS_A_GROUP
                )
        except duckdb.IOException as error:
            raise OSError(str(error)) from error
        except duckdb.Error as error:
            raise ValueError(str(error)) from error
    return count


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """Made once: that takes longer than to write the rows of most runs. Where Lambda runs it, only
    the system's temporary folder can be written to."""
    spills = str(Path(tempfile.gettempdir()) / "runtally-duckdb")
    return duckdb.connect(config={"memory_limit": _MEMORY, "threads": 1, "temp_directory": spills})


def _spooled(column: Column) -> str:
    return "BIGINT" if column.kind == "TIMESTAMP" else column.kind


def _selected(column: Column) -> str:
    if column.kind == "TIMESTAMP":
        return f"make_timestamp({column.name} // 1000) AS {column.name}"
    return column.name


def _plain(value: object) -> object:
    raise TypeError(f"no value of a row: {value!r}")
