"""The lake equals the table at rest: whatever the order of events, whoever writes at once."""

import contextlib
import itertools
import random
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.core import keys, lake, lake_ports
from functions.core.errors import Unavailable
from functions.lake.write import WriteRun
from runtally import wire
from tests import build, invariants
from tests.build import RUN, T0
from tests.memory_stage import MemoryStage
from tests.properties import test_any_history as histories
from tests.simulation.tasks import Killed, Tasks

DAY_NS = 86_400 * 10**9


# -- any history, any cut of the lake's own stream -----------------------------------------------


@settings(max_examples=25, deadline=None)
@given(data=st.data(), all_events=histories.events(), buckets=st.integers(1, 3))
def test_any_history_ends_with_the_lake_equal_to_the_summary(
    data: st.DataObject, all_events: list[wire.Event], buckets: int
) -> None:
    """Late steps, re-ends and earlier starts included; batches come in any cut, some twice."""
    stage = MemoryStage(page_bytes=1_000, lake=True)
    assert stage.lake
    draw = data.draw
    order = draw(st.permutations(all_events))
    for start in range(0, len(order), 3):
        assert stage.ingest(build.body(*order[start : start + 3], buckets=buckets)) == []
        if draw(st.booleans()):
            stage.summarize(stage.new_stream_records())
            records = stage.lake.new_stream_records()
            assert stage.lake.deliver(records) == []
            assert stage.lake.deliver(records[draw(st.integers(0, len(records))) :]) == []
    stage.drain()
    invariants.lake_equals_summary(stage, RUN)


# -- any interleaving of writers -----------------------------------------------------------------


EVENTS: tuple[wire.Event, ...] = (
    build.step(2, cost_usd="1"),
    build.ended(T0 + 2, "failed"),
    build.started(T0 - DAY_NS),
    build.step(3, cost_usd="2"),
    build.started(T0 - 2 * DAY_NS, pipeline="earlier"),
    build.ended(T0 + 1, "cancelled"),
)


def play(seed: int, events: Sequence[wire.Event], kills: int) -> None:
    """Each event is stored by its own task, which then has a writer of its own, at once with all
    others; a writer that is killed or fails comes again, as its record does."""
    schedule = random.Random(seed)  # noqa: S311 - a schedule
    stage, write = ended_run()
    tasks = Tasks(schedule)
    left = kills

    def interleave(call: str, when: str) -> None:
        nonlocal left
        tasks.pause()
        if left and writing and tasks.current in writing and schedule.random() < 0.1:
            left -= 1
            raise Killed

    writing: set[object] = set()

    def store_and_write(one: wire.Event | None) -> None:
        if one is not None:
            while stage.ingest(build.body(one)):
                """Its message comes again."""
        writing.add(tasks.current)
        again(write)
        writing.discard(tasks.current)

    def again(write: WriteRun) -> None:
        while True:
            try:
                write(RUN)
            except (Killed, Unavailable):
                continue
            return

    stage.calls.hook = interleave
    for one in (None, *events):
        tasks.spawn(lambda one=one: store_and_write(one))  # type: ignore[misc]
    tasks.run()
    stage.calls.hook = lambda call, when: None
    assert contents(stage) == expected(stage)


def contents(stage: MemoryStage) -> dict[str, bytes]:
    assert stage.lake
    return stage.lake.s3.objects


def expected(stage: MemoryStage) -> dict[str, bytes]:
    """The one answer, from what is at rest: of one who reads alone."""
    assert stage.lake
    source = stage.lake.parts.write.source
    run = source.load_run(RUN)
    assert run is not None
    steps = sorted(source.steps_of_run(run), key=lambda step: step.step_id)
    day = lake.day_of(run)
    return {
        lake_ports.object_of_run(table, RUN, day): b"\n".join(map(msgspec.json.encode, rows))
        for table, rows in lake.rows_of_run(run, steps, source.calls_of_run(run), 0)
    }


@pytest.mark.parametrize("then", ["goes on", "is killed"])
@pytest.mark.parametrize("one", EVENTS[:3], ids=lambda one: type(one).__name__)
def test_whoever_is_overtaken_anywhere_does_not_have_the_last_word(
    one: wire.Event, then: str
) -> None:
    """At each request of a writer another event is stored and written; then the writer goes on, or
    is killed at any later request and its record comes again."""
    alone, write = ended_run()
    before = len(alone.calls.made)
    write(RUN)
    moments = 2 * (len(alone.calls.made) - before)
    for overtaken in range(moments):
        for killed in range(overtaken, moments) if then == "is killed" else (None,):
            stage, write = ended_run()
            seen = itertools.count()

            def meanwhile(call: str, when: str) -> None:
                at = next(seen)  # noqa: B023
                if at == overtaken:  # noqa: B023
                    hook, stage.calls.hook = stage.calls.hook, lambda call, when: None  # noqa: B023
                    assert stage.ingest(build.body(one)) == []  # noqa: B023
                    write(RUN)  # noqa: B023
                    stage.calls.hook = hook  # noqa: B023
                if at == killed:  # noqa: B023
                    raise Killed

            stage.calls.hook = meanwhile
            with contextlib.suppress(Killed):
                write(RUN)
            stage.calls.hook = lambda call, when: None
            if killed is not None:
                write(RUN)
            assert contents(stage) == expected(stage), (overtaken, killed)


def ended_run() -> tuple[MemoryStage, WriteRun]:
    stage = MemoryStage(lake=True)
    assert stage.lake
    stage.ingest(build.body(build.started(), build.step(1), build.ended()))
    stage.summarize(stage.new_stream_records())
    stage.lake.write_plain()
    return stage, stage.lake.parts.write


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    events=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=4, unique_by=wire.encode_event),
    kills=st.integers(0, 3),
)
def test_whoever_writes_last_has_read_last(seed: int, events: list[wire.Event], kills: int) -> None:
    """Under no other day is there a file, and no file is older than the table."""
    play(seed, events, kills)


@pytest.mark.large
@pytest.mark.timeout(3_600)
@settings(max_examples=20_000, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    events=st.lists(st.sampled_from(EVENTS), min_size=1, unique_by=wire.encode_event),
    kills=st.integers(0, 5),
)
def test_20000_schedules(seed: int, events: list[wire.Event], kills: int) -> None:
    play(seed, events, kills)


def test_the_note_names_a_day_before_there_is_a_file_under_it() -> None:
    """What erase goes by, at every moment."""
    stage = MemoryStage(lake=True)
    assert stage.lake
    stage.ingest(build.body(build.started(), build.step(1), build.ended()))

    def named(call: str, when: str) -> None:
        note = stage.item(RUN, keys.LAKE)
        days = [] if note is None else note["days"]
        assert stage.lake
        for key in stage.lake.s3.objects:
            assert key.partition("/day=")[2].partition("/")[0] in days

    stage.calls.hook = named
    stage.drain()
    stage.ingest(build.body(build.started(T0 - DAY_NS)))
    stage.drain()
    assert stage.lake.files_of(RUN)
