"""Rows as wide as caps allow, and many of them, to Parquet in the memory that there is for it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb
import pytest

from functions.core import caps, lake

PROGRAM: Final = """
import sys
from pathlib import Path
from functions.adapters.parquet import write_parquet
from tests.unit.lake.test_parquet import wide_rows
from benchmarks.recount import peak
from functions.core import lake
rows = write_parquet(lake.CALLS, wide_rows(int(sys.argv[2])), Path(sys.argv[1]))
print(rows, int(peak()))
"""
"""In a process of its own, of which the most memory is known."""


def wide_rows(count: int) -> Iterator[lake.Row]:
    """No two alike, or dictionaries would make them small."""
    empty = dict.fromkeys(column.name for column in lake.CALLS.columns)
    texts = ("phase", "name", "agent", "model", "provider", "session_id")
    for n in range(count):
        word = f"{n * 2_654_435_761 % 2**64:020}"
        wide = dict.fromkeys(texts, (word * 7)[: caps.NAME])
        attributes = (word * 103)[: caps.STEP_ATTRIBUTES]
        error = (word * 13)[: caps.ERROR]
        yield {**empty, **wide, "step_id": f"{n:019}", "attributes": attributes, "error": error}


@pytest.mark.parametrize("count", [40_000, pytest.param(100_000, marks=pytest.mark.large)])
def test_the_widest_rows_fit_into_bounded_memory(tmp_path: Path, count: int) -> None:
    file = tmp_path / "wide.parquet"
    command = [sys.executable, "-c", PROGRAM, str(file), str(count)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    rows, peak_mb = map(int, made.stdout.split())
    assert rows == count
    assert peak_mb < 350
    with duckdb.connect() as database:
        read = database.read_parquet(str(file))
        found = read.aggregate("count(DISTINCT step_id), min(length(attributes))").fetchall()
    assert found == [(count, caps.STEP_ATTRIBUTES)]
