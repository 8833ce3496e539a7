"""What the functions load: nothing that only the lake needs."""

import pytest

from tests.unit.sdk.test_imports import loaded_by

HANDLERS = [
    "functions.ingest.handler",
    "functions.summarize.handler",
    "functions.summarize.recount_handler",
    "functions.api.handler",
    "functions.api.dead_jobs_handler",
    "functions.sweep.handler",
    "functions.erase.handler",
]


@pytest.mark.parametrize("handler", HANDLERS)
def test_no_function_but_the_lakes_loads_duckdb_or_arrow(handler: str) -> None:
    assert not loaded_by(f"import {handler}") & {"duckdb", "_duckdb", "pyarrow"}


def test_writing_parquet_does_so_that_the_check_above_can_fail() -> None:
    assert "duckdb" in loaded_by("import functions.adapters.parquet")
