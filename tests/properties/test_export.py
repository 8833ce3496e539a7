"""What is exported equals the table to the last digit, whatever came, in any order, and when."""

import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import export as benchmark
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.core import counts, items, keys, lake
from functions.core.errors import NotFound
from functions.core.lake import NotEnded, Table
from functions.core.model import EXACT, sum_exactly
from local.export_manifest import Format, Manifest
from local.exporting import Export
from runtally import wire
from tests import build
from tests.build import RUN, T0
from tests.memory_stage import MemoryStage
from tests.properties import test_any_history as histories

DAY = 86_400 * build.SECOND
WIDE = st.sampled_from(["999999999999.999999999999999999", "0.000000000000000001", "0", "7.50"])


@st.composite
def events(draw: st.DrawFn) -> list[wire.Event]:
    """As in any history, with costs of all digits, and starts on two days."""
    found = draw(histories.events())
    extra = draw(st.lists(st.integers(501, 520), unique=True, max_size=4))
    wide = [build.step(n, cost_usd=draw(WIDE), output_tokens=draw(COUNTS)) for n in extra]
    earlier = draw(st.lists(st.integers(0, 2), unique=True, max_size=2))
    return [*found, *wide, *(build.started(T0 - n * DAY, pipeline=f"e{n}") for n in earlier)]


COUNTS = st.none() | st.integers(0, 10**12)


@settings(max_examples=40)
@given(data=st.data(), all_events=events(), buckets=st.integers(1, 3))
def test_rows_sums_and_phases_are_the_summarys(
    data: st.DataObject, all_events: list[wire.Event], buckets: int
) -> None:
    compare(data, all_events, buckets)


@pytest.mark.large
@pytest.mark.timeout(3_600)
@settings(max_examples=2_000)
@given(data=st.data(), all_events=events(), buckets=st.integers(1, 3))
def test_2000_histories(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    compare(data, all_events, buckets)


@pytest.mark.large
@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_100000_calls_are_exported_in_bounded_memory(format_: Format) -> None:
    """Of which 80 MB are Python, boto3 and DuckDB. Every item at once would be as much again."""
    assert benchmark.of(100_000, format_)["peak_mb"] < 350


def compare(data: st.DataObject, all_events: Sequence[wire.Event], buckets: int) -> None:
    """The run is exported while it is being recorded, at rest or not, into the same folder; once it
    is at rest, one more export leaves what the table has, and nothing else."""
    stage = MemoryStage(page_bytes=1_000)
    with tempfile.TemporaryDirectory() as folder:
        order = data.draw(st.permutations(list(all_events)))
        order += data.draw(st.lists(st.sampled_from(order), max_size=3)) if order else []
        while order:
            size = data.draw(st.integers(1, len(order)))
            assert stage.ingest(build.body(*order[:size], buckets=buckets)) == []
            order = order[size:]
            if data.draw(st.booleans()):
                stage.drain()
            if data.draw(st.booleans()):
                export(stage, Path(folder))
        stage.drain()
        export(stage, Path(folder))
        equals_the_table(stage, Path(folder))
        if rows(Path(folder), lake.RUNS):
            assert export(stage, Path(folder)) is None


def export(stage: MemoryStage, folder: Path) -> int | None:
    client: Any = stage.dynamodb
    reader = DynamoDBRunReader(DynamoDBTable(client, "t"))
    with Manifest.opened(folder) as manifest:
        try:
            return Export(reader, folder, "parquet", manifest, lambda: stage.now_ns)(RUN)
        except (NotEnded, NotFound):
            return None


def rows(folder: Path, table: Table) -> list[dict[str, Any]]:
    files = sorted(str(path) for path in folder.rglob(f"{table.name}/*/*/*.parquet"))
    if not files:
        return []
    with duckdb.connect() as database:
        found = database.read_parquet(files, hive_partitioning=False)
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def equals_the_table(stage: MemoryStage, folder: Path) -> None:
    run_item, summary_item = stage.item(RUN, keys.RUN), stage.item(RUN, keys.SUMMARY)
    runs, calls, phases = (rows(folder, table) for table in lake.TABLES)
    if run_item is None or "end" not in run_item:
        assert runs == calls == phases == []
        return
    assert summary_item is not None
    run, summary = items.parse_run(run_item), counts.parse_summary(summary_item)
    assert run.end
    of_run = {**RUN._asdict(), "day": lake.day_of(run), "pipeline": run.start.pipeline}
    (row,) = runs
    sums = summary.totals.as_attributes()
    assert {name: row[name] for name in (*of_run, *sums)} == {**of_run, **sums}
    assert (row["started_ns"], row["ended_ns"]) == (run.start.order.at, run.end.order.at)
    assert (row["status"], row["attributes"]) == (run.end.status, run.start.attributes)

    stored = [item[keys.SORT] for item in stage.items_of(RUN, keys.STEP_PREFIX)]
    assert [keys.STEP_PREFIX + call["step_id"] for call in calls] == sorted(stored)
    assert counted(calls) == {name: sums[name] for name in counted(calls)}
    assert all({name: call[name] for name in of_run} == of_run for call in calls)

    assert len(phases) == len(summary.phases)
    for found, phase in zip(phases, summary.phases, strict=True):
        mine = counted([call for call in calls if call["phase"] == phase.phase])
        assert (found["phase"], found["calls"]) == (phase.phase, phase.calls)
        assert found["cost_usd"] == phase.cost_usd == mine["cost_usd_total"]
        assert phase.calls == mine["agents_total"]
        for name in ("failed", "cost_unknown"):
            assert found[name] == getattr(phase, name) == mine[f"{name}_total"]
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            assert found[name] == getattr(phase, name) == mine[name]
        for name in ("wall_ms", "busy_ms", "p50_ms", "p95_ms", "max_ms"):
            assert found[name] == float(getattr(phase, name))
        assert (found["agents"], found["models"]) == (list(phase.agents), list(phase.models))


def counted(calls: Sequence[dict[str, Any]]) -> dict[str, int | Decimal]:
    """What the totals of these rows are."""
    tokens = ("input_tokens", "output_tokens", "cached_tokens")
    return {
        "agents_total": len(calls),
        "failed_total": sum(call["status"] == "failed" for call in calls),
        "cancelled_total": sum(call["status"] == "cancelled" for call in calls),
        "cost_usd_total": sum_exactly(call["cost_usd"] for call in calls),
        "cost_unknown_total": sum(call["cost_usd"] is None for call in calls),
        **{name: sum(call[name] or 0 for call in calls) for name in tokens},
    }


def test_a_sum_of_all_digits_is_kept() -> None:
    """More of them than Python's default context has, and than a double."""
    stage = MemoryStage()
    steps = [build.step(n, cost_usd="999999999999.999999999999999999") for n in range(1, 150)]
    stage.ingest(build.body(build.started(), *steps, build.ended()))
    stage.drain()
    with tempfile.TemporaryDirectory() as folder:
        assert export(stage, Path(folder)) == 149
        equals_the_table(stage, Path(folder))
        (run,) = rows(Path(folder), lake.RUNS)
        one = Decimal("999999999999.999999999999999999")
        assert run["cost_usd_total"] == EXACT.multiply(one, Decimal(149))
