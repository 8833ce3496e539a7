"""Any order, any duplicates, any packing, any cut of the stream: the same final items (I7)."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.core import keys
from runtally import wire
from tests import build, invariants
from tests.build import RUN, T0
from tests.memory_stage import MemoryStage

NAMES = st.text(max_size=6)
COSTS = st.none() | st.decimals(0, 10**6, places=9).map(lambda cost: format(cost, "f"))


@st.composite
def steps(draw: st.DrawFn) -> list[wire.Step]:
    numbers = draw(st.lists(st.integers(1, 500), unique=True, max_size=14))
    return [
        build.step(
            n,
            name=draw(NAMES),
            phase=draw(st.none() | st.sampled_from(["plan", "书写", "x"])),
            status=draw(st.sampled_from(["succeeded", "failed", "cancelled"])),
            parent_id=draw(st.none() | st.sampled_from(numbers).map(build.step_id)),
            cost_usd=draw(COSTS),
            input_tokens=draw(st.none() | st.integers(0, 10**6)),
            payload=draw(st.none() | st.dictionaries(NAMES, NAMES, max_size=2)),
        )
        for n in numbers
    ]


@st.composite
def events(draw: st.DrawFn) -> list[wire.Event]:
    starts = draw(st.lists(st.integers(0, 3), unique=True, max_size=2))
    ends = draw(st.lists(st.integers(0, 3), unique=True, max_size=2))
    return [
        *(build.started(T0 + at, pipeline=f"p{at}", attributes={"n": at}) for at in starts),
        *draw(steps()),
        *(build.log(n, f"line {n}") for n in draw(st.sets(st.integers(1, 9), max_size=2))),
        *(
            build.ended(
                build.T0 + at,
                status=draw(st.sampled_from(["succeeded", "failed"])),
                result=draw(st.none() | NAMES),
            )
            for at in ends
        ),
    ]


def deliver(
    stage: MemoryStage, data: st.DataObject, all_events: Sequence[wire.Event], buckets: int
) -> None:
    """Send every event at least once, packed, ordered, batched and repeated at will, and let the
    stream trickle in between: in any cuts, and again from any point already delivered."""
    draw = data.draw
    order = draw(st.permutations(list(all_events)))
    packs: list[list[wire.Event]] = []
    while order:
        size = draw(st.integers(1, len(order)))
        packs.append(list(order[:size]))
        order = order[size:]
    again = draw(st.lists(st.sampled_from(packs), max_size=3)) if packs else []
    bodies = [build.body(*pack, buckets=buckets) for pack in draw(st.permutations(packs + again))]
    lanes: dict[str, list[dict[str, object]]] = {}
    reached: dict[str, int] = {}
    while bodies:
        size = draw(st.integers(1, 3))
        assert stage.ingest(*bodies[:size]) == []
        bodies = bodies[size:]
        invariants.pointers_hold(stage, RUN)
        for record in stage.new_stream_records():
            lanes.setdefault(record["dynamodb"]["Keys"]["PK"]["S"], []).append(record)
        for lane, records in lanes.items():
            start = draw(st.integers(0, reached.get(lane, 0)))
            stop = draw(st.integers(start, len(records)))
            assert stage.summarize(records[start:stop]) == []
            reached[lane] = max(reached.get(lane, 0), stop)
        if draw(st.booleans()):
            assert stage.recount() == []
    for lane, records in lanes.items():
        assert stage.summarize(records[reached.get(lane, 0) :]) == []
    stage.drain()


@settings(max_examples=150)
@given(data=st.data(), all_events=events(), buckets=st.integers(1, 3))
def test_any_history_of_the_same_events_ends_the_same(
    data: st.DataObject, all_events: list[wire.Event], buckets: int
) -> None:
    compare_histories(data, all_events, buckets)


@pytest.mark.large
@pytest.mark.timeout(3_600)
@settings(max_examples=5_000)
@given(data=st.data(), all_events=events(), buckets=st.integers(1, 3))
def test_5000_histories(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    compare_histories(data, all_events, buckets)


def compare_histories(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    plain = MemoryStage()
    if all_events:
        assert plain.ingest(build.body(*all_events, buckets=buckets)) == []
        plain.drain()
    stage = MemoryStage(page_bytes=1_000)  # a few steps a page
    deliver(stage, data, all_events, buckets)

    assert invariants.final_state(stage, RUN) == invariants.final_state(plain, RUN)
    sent = [event for event in all_events if isinstance(event, wire.Step)]
    invariants.counted_exactly(stage, RUN, sent)
    invariants.caps_hold(stage)
    check_run(stage, all_events)


def check_run(stage: MemoryStage, all_events: Sequence[wire.Event]) -> None:
    """The earliest start and the earliest end decide, as computed from what was sent."""
    run = stage.item(RUN, keys.RUN)
    if not all_events:
        assert run is None
        return
    assert run is not None
    starts = sorted(e.at for e in all_events if isinstance(e, wire.RunStarted))
    ends = sorted(
        ((e.at, wire.digest(wire.encode_event(e))), e)
        for e in all_events
        if isinstance(e, wire.RunEnded)
    )
    if starts:
        assert run["start"]["at"] == starts[0]
        assert run["pipeline"] == f"p{starts[0] - T0}"
    else:
        assert run["start"]["implicit"]
    assert run["status"] == (ends[0][1].status if ends else "running")
    assert (keys.OPEN_RUNS_PARTITION in run) == (not ends)


def test_sums_keep_every_digit() -> None:
    """Costs at both ends of what the wire allows: a sum of more digits than Python's default."""
    stage = MemoryStage()
    costs = ["999999999999.999999999999999999", "0.000000000000000001", "999999999999.5"]
    stage.ingest(build.body(*(build.step(n, cost_usd=c) for n, c in enumerate(costs, 1))))
    stage.drain()
    totals = stage.item(RUN, keys.TOTALS)
    assert totals is not None
    assert totals["cost_usd_total"] == Decimal("1999999999999.5")
