"""Rows to Parquet, by DuckDB: the only file here that knows it."""

import functools
import glob
import gzip
import tempfile
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Final

import duckdb
import msgspec

from functions.core.lake import Column, Row, Table

_MEMORY: Final = "256MB"
_ROWS_A_GROUP: Final = 5_000
"""The widest that caps allow (functions/core/caps.py) take some 4 KB each; DuckDB holds a group
more than once while it is written."""
_making: Final = Lock()


def write_parquet(table: Table, rows: Iterable[Row], file: Path) -> int:
    """Write the rows to a file of the table's columns, and return how many there were.

    They wait in a file beside it, one a line, gzipped, and DuckDB takes them in groups: memory is
    bounded, however many there are, and however wide. Money and counts stay exact; a TIMESTAMP is
    given in nanoseconds, and cut to microseconds, which is what Athena reads. Safe in threads.
    Raises ValueError for a row that does not fit the columns, OSError when the file cannot be
    written.
    """
    encode = msgspec.json.Encoder(enc_hook=_plain, decimal_format="string").encode
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".jsonl.gz") as spooled:
        count = 0
        with gzip.GzipFile(fileobj=spooled, mode="wb", compresslevel=1) as lines:
            for row in rows:
                lines.write(encode(row) + b"\n")
                count += 1
        spooled.flush()
        columns = {column.name: _spooled(column) for column in table.columns}
        selected = ", ".join(_selected(column) for column in table.columns)
        try:
            with _making:
                cursor = _database().cursor()
            with cursor as database:
                read = database.read_json(
                    glob.escape(spooled.name),
                    columns=columns,
                    format="newline_delimited",
                    compression="gzip",
                    hive_partitioning=False,  # a folder's own name may have a `=`
                )
                read.project(selected).write_parquet(
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
    the system's temporary folder can be written to; DuckDB makes the folder if it needs it."""
    with tempfile.TemporaryDirectory(prefix="runtally-duckdb-") as unique:
        spills = unique
    return duckdb.connect(config={"memory_limit": _MEMORY, "threads": 1, "temp_directory": spills})


def _spooled(column: Column) -> str:
    return "BIGINT" if column.kind == "TIMESTAMP" else column.kind


def _selected(column: Column) -> str:
    if column.kind == "TIMESTAMP":
        return f"make_timestamp({column.name} // 1000) AS {column.name}"
    return column.name


def _plain(value: object) -> object:
    raise TypeError(f"no value of a row: {value!r}")
