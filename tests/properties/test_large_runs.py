"""Runs at the sizes that broke other designs: caps, exact sums, write units, the recount queue."""

import itertools
from decimal import Decimal
from typing import Any

import pytest

from functions.core import keys
from functions.core.keys import RunRef
from runtally import wire
from tests import build, invariants
from tests.api import HttpClient, issue_key
from tests.build import RUN
from tests.fakes.dynamodb import item_size
from tests.memory_stage import RECOUNTS, MemoryStage

CALLS = 1_500


def calls(count: int, phases: int = 6) -> list[wire.Step]:
    return [
        build.step(
            n,
            name="chat",
            phase=f"phase {n % phases}",
            agent=f"agent {n % 8}",
            model="m-large",
            status="failed" if n % 50 == 0 else "succeeded",
            input_tokens=1_000 + n,
            output_tokens=n % 300,
            cost_usd=f"0.{n:09d}" if n % 10 else None,
            payload={"content": "words " * 20},
        )
        for n in range(1, count + 1)
    ]


def record(stage: MemoryStage, steps: list[wire.Step], per_message: int, buckets: int = 1) -> None:
    """A run as a worker sends it: the start, its steps packed, the end; the stream keeps pace with
    every ten messages, which is slow: a batch takes all that came within its window."""
    stage.ingest(build.body(build.started(), buckets=buckets))
    packs = itertools.batched(steps, per_message)
    messages = [build.body(*pack, buckets=buckets) for pack in packs]
    for batch in itertools.batched(messages, 10):
        assert stage.ingest(*batch) == []
        stage.summarize(stage.new_stream_records())
    stage.ingest(build.body(build.ended(), buckets=buckets))
    stage.drain()


def test_1500_calls_are_exact_small_and_cheap() -> None:
    stage = MemoryStage()
    steps = calls(CALLS)
    record(stage, steps, per_message=10)
    invariants.counted_exactly(stage, RUN, steps)
    invariants.caps_hold(stage)
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    for n, phase in enumerate(sorted(summary["phases_summary"], key=lambda p: p["phase"])):
        mine = [s for s in steps if s.phase == f"phase {n}"]
        costs = [Decimal(s.cost_usd) for s in mine if s.cost_usd]
        assert (phase["calls"], phase["cost_usd"]) == (250, sum(costs))
        assert phase["failed"] == sum(s.status == "failed" for s in mine)
    assert stage.dynamodb.write_units / CALLS <= 1.15


def test_a_run_of_60_steps_packed_by_5_is_cheap_too() -> None:
    stage = MemoryStage()
    steps = calls(60)
    stage.ingest(build.body(build.started()))
    for pack in itertools.batched(steps, 5):
        stage.ingest(build.body(*pack))
        stage.summarize(stage.new_stream_records())  # a batch a message: the dearest case
    stage.ingest(build.body(build.ended()))
    stage.drain()
    invariants.counted_exactly(stage, RUN, steps)
    assert stage.dynamodb.write_units / 60 <= 2.0


@pytest.mark.parametrize("buckets", [1, 8])
def test_20000_steps_are_recounted_through_the_queue(buckets: int) -> None:
    stage = MemoryStage()
    steps = calls(20_000)
    stage.ingest(build.body(build.started(), buckets=buckets))
    for batch in itertools.batched(itertools.batched(steps, 100), 10):
        stage.ingest(*(build.body(*pack, buckets=buckets) for pack in batch))
        stage.summarize(stage.new_stream_records())
    stage.ingest(build.body(build.ended(), buckets=buckets))
    stage.summarize(stage.new_stream_records())
    assert stage.item(RUN, keys.SUMMARY) is None
    assert len(stage.sqs.queues[RECOUNTS]) == 1
    stage.drain()
    invariants.counted_exactly(stage, RUN, steps)
    invariants.caps_hold(stage)
    assert stage.calls.made.count("dynamodb.query") >= buckets


@pytest.mark.large
@pytest.mark.timeout(1_200)
def test_100000_steps_in_eight_buckets_need_no_special_case() -> None:
    stage = MemoryStage(retention_days=3_650)
    steps = calls(100_000)
    stage.ingest(build.body(build.started(), buckets=8))
    for batch in itertools.batched(itertools.batched(steps, 100), 10):
        assert stage.ingest(*(build.body(*pack, buckets=8) for pack in batch)) == []
        stage.summarize(stage.new_stream_records())
    stage.ingest(build.body(build.ended(), buckets=8))
    stage.drain()
    invariants.counted_exactly(stage, RUN, steps)
    invariants.caps_hold(stage)


def test_10000_phases_long_names_and_long_errors_keep_every_item_under_its_cap() -> None:
    stage = MemoryStage()
    steps = [
        build.step(
            n,
            phase=f"阶段 {n} " + "长" * 1_400,
            agent=f"agent {n} " + "a" * 4_000,
            model=f"model {n} " + "m" * 4_000,
            name="名" * 1_400,
            cost_usd="999999999999.999999999999999999",
            error="错" * 170_000 if n == 1 else None,
            status="failed" if n == 1 else "succeeded",
        )
        for n in range(1, 10_001)
    ]
    for batch in itertools.batched(steps, 100):
        stage.ingest(build.body(*batch))
        stage.summarize(stage.new_stream_records())
    stage.ingest(build.body(build.ended()))
    stage.drain()
    invariants.counted_exactly(stage, RUN, steps)
    invariants.caps_hold(stage)
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    *phases, rest = summary["phases_summary"]
    assert len(phases) <= 200
    assert all("rolled_up" not in phase for phase in phases)
    assert rest["rolled_up"] == rest["calls"] == 10_000 - len(phases)
    first, *_ = stage.items_of(RUN, keys.STEP_PREFIX)
    whole = wire.decode_event(stage.line_behind(RUN, first["pointer"]), "")
    assert whole == steps[0]


def test_200_short_phases_are_all_there_and_one_more_is_rolled_up() -> None:
    for count in (200, 201):
        stage = MemoryStage()
        steps = [build.step(n, phase=f"p{n}") for n in range(1, count + 1)]
        stage.ingest(build.body(*steps, build.ended()))
        stage.drain()
        phases: list[Any] = (stage.item(RUN, keys.SUMMARY) or {})["phases_summary"]
        assert [p["calls"] for p in phases] == [1] * count
        assert [p.get("rolled_up") for p in phases][:200] == [None] * 200
        assert [p.get("rolled_up") for p in phases][200:] == [1] * (count - 200)


def test_totals_of_64_buckets_stay_light() -> None:
    stage = MemoryStage()
    run = RunRef("t" * 64, "r" * 128)
    steps = calls(1_000)
    for pack in itertools.batched(steps, 100):
        stage.ingest(build.body(*pack, run=run, buckets=64))
    stage.drain()
    item = stage.dynamodb.items[keys.run_partition(run), keys.TOTALS]
    assert sum(name.startswith("seq_") for name in item) == 64
    assert item_size(item) <= 3 * 1024
    invariants.counted_exactly(stage, run, steps)


@pytest.mark.parametrize(
    ("count", "buckets"),
    [(33_000, 1), (33_000, 8), pytest.param(100_000, 8, marks=pytest.mark.large)],
)
def test_a_large_run_is_read_back_whole_over_http(count: int, buckets: int) -> None:
    """I9: each call once, in order, over pages that each fit a Lambda response."""
    stage = MemoryStage()
    steps = calls(count)
    for pack in itertools.batched(steps, 100, strict=False):
        assert stage.ingest(build.body(*pack, buckets=buckets)) == []
    key = issue_key(stage, RUN.tenant_id)
    for gzipped in (True, False):
        client = HttpClient(stage, key, gzipped=gzipped, clock=lambda: 0.0)  # size alone decides
        found: list[str] = []
        query: dict[str, str] = {}
        pages = 0
        while True:
            stage.calls.made.clear()
            page = client.get(f"/pipeline-runs/{RUN.run_id}", **query).json
            # A bucket each to begin with, then as many as what is shown takes, and one ahead.
            bound = 1 + 2 * buckets + len(page["calls"]) // 200
            assert stage.calls.made.count("dynamodb.query") <= bound
            found += [call["step_id"] for call in page["calls"]]
            pages += 1
            if "next" not in page:
                break
            query["cursor"] = page["next"]
        assert found == sorted(step.step_id for step in steps)
        assert pages == 1 or not gzipped
