"""What `cost` counts, against sums made here: of requests, write units and dollars."""

import math
from typing import Any

import pytest

from benchmarks import aws_prices
from benchmarks.cost import runs
from benchmarks.cost.bars import BY_10, BY_25, DEFAULTS, NO_COUNTERS, SHORT, SLOW, bars
from benchmarks.cost.calls import EVERY_SECOND, calls
from benchmarks.cost.stage import billed
from benchmarks.cost.usage import Usage
from benchmarks.cost.virtual_time import VirtualTime
from runtally import wire


@pytest.fixture(scope="module")
def events() -> list[wire.RunEvent]:
    """Of a run of 1,500 calls."""
    return runs.events_of(1_500, 8)


@pytest.mark.parametrize("size", [10, 25])
def test_a_packed_run_takes_a_put_a_message_and_few_units_besides_the_steps(
    events: list[wire.RunEvent], size: int
) -> None:
    messages = 1 + math.ceil(1_500 / size)  # the start goes alone
    usage = runs.packed(events, size)
    assert usage.steps == 1_500
    assert usage.seen["messages"] == usage.counted["s3_puts"] == messages
    assert usage.counted["events"] == 1
    # Every message is ingested alone, and all but the start are counted; the end once more.
    assert usage.counted["lambda_requests"] in {2 * messages - 2, 2 * messages - 1, 2 * messages}
    assert 1 <= usage.counted["write_units"] / 1_500 <= 1.15
    chunks = 2 if size == 25 else 1  # 25 payloads of 4 KB are more than 64 KB
    assert usage.counted["sqs_requests"] == pytest.approx(messages * (2 * chunks + 1), abs=3)


def test_a_short_run_packed_by_5_stays_below_two_units_a_step() -> None:
    usage = runs.packed(runs.events_of(60, 8), 5)
    assert usage.counted["s3_puts"] == 13
    assert 60 < usage.counted["write_units"] <= 120
    assert usage.counted["sqs_requests"] == 39


@pytest.mark.parametrize("seconds", [5, 10])
def test_the_sdk_cuts_a_slow_run_so_often(seconds: int) -> None:
    usage = runs.slow_run(120, seconds)
    events = runs.events_of(120, 1, EVERY_SECOND)
    steps = [event for event in events if isinstance(event, wire.Step)]
    assert [step.ended_at - step.started_at for step in steps] == [10**9] * 120
    # The start alone; then from a step's end for so long, which is a step more, or not.
    assert 1 + 120 // (seconds + 1) <= usage.seen["messages"] <= 2 + 120 // seconds


def test_the_same_calls_are_made_every_time() -> None:
    assert calls(50) == calls(50)
    assert calls(50) != calls(50, seed=2)
    sizes = [len(str(call.payload)) for call in calls(50)]
    assert 3_900 <= min(sizes) <= max(sizes) <= 4_300


def test_sqs_bills_each_64_kb_of_what_travels_together() -> None:
    kilobyte = "x" * 1_024
    assert [billed([kilobyte * 64]), billed([kilobyte * 64, "x"]), billed(["x"] * 10)] == [1, 2, 1]


def test_dollars_are_of_a_million_steps() -> None:
    usage = Usage(1_000, {"s3_puts": 1_000, "write_units": 2_000}, {"cpu": 0.5, "waiting": 1})
    figures = usage.figures()
    assert figures["usd"] == {"s3_puts": 5, "write_units": 1.25}
    assert figures["counted_usd"] == 6.25
    time = 1_500 * float(aws_prices.LAMBDA_GB_SECOND)
    assert figures["usd_per_million"] == pytest.approx(6.25 + time, abs=0.001)


def test_time_passes_by_what_is_due() -> None:
    happened: list[tuple[str, float]] = []
    with VirtualTime() as time:
        time.after(2, lambda: happened.append(("late", time.passed_s)))
        time.after(1, lambda: time.after(0.5, lambda: happened.append(("early", time.passed_s))))
        time.run()
    assert happened == [("early", 1.5), ("late", 2)]


def test_a_bar_is_missed_above_it_and_the_best_rival_sets_the_sixth() -> None:
    ours: dict[str, dict[str, Any]] = {
        name: {"counted_usd": 1.5, "usd_per_million": 1.8, "write_units_per_step": 1.2}
        for name in (DEFAULTS, BY_10, BY_25)
    }
    ours[SHORT] = ours[SLOW] = {"write_units_per_step": 1.3}
    others: dict[str, dict[str, Any]] = {
        NO_COUNTERS: {"counted_usd": 5.6},
        "dear": {"counted_usd": 60.0},
        "cheap": {"counted_usd": 9.0},
        "unknown": {"not_here": "its packages cannot be fetched"},
    }
    found = {bar["name"]: bar for bar in bars(ours, others)}
    of_defaults = found[f"USD per million, {DEFAULTS}"]
    assert (of_defaults["holds"], of_defaults["holds_with_lambda_time"]) == (True, False)
    assert not found[f"USD per million, {BY_25}"]["holds"]
    assert found[f"USD per million, {DEFAULTS}: a sixth of cheap"]["bar"] == 1.5
    units = [found[f"write units a step, {name}"] for name in (BY_10, SLOW)]
    assert [bar["holds"] for bar in units] == [False, True]
