"""A table that lost all of its runs comes back from the objects alone, whatever its history, and
the lake keeps what does not come back."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.core import keys
from local.lake_notes import restore_notes
from local.rebuilding import objects_of
from local.rebuilt import Check
from local.recounting import Recounting
from local.resending import Resending
from local.stage import Stage
from local.waiting import UnderWay
from runtally import wire
from tests import build, invariants
from tests.build import RUN, SECOND, T0
from tests.fakes.cloud import MemoryCloud
from tests.memory_lake import day_in
from tests.memory_stage import RECOUNTS, MemoryStage
from tests.properties import test_any_history as histories
from tests.unit.local.terminal import Buckets
from tests.unit.local.test_stage import OUTPUTS


@settings(max_examples=60)
@given(data=st.data(), all_events=histories.events(), buckets=st.integers(1, 3))
def test_any_history_is_rebuilt_as_it_was(
    data: st.DataObject, all_events: list[wire.Event], buckets: int
) -> None:
    compare(data, all_events, buckets)


@pytest.mark.large
@pytest.mark.timeout(3_600)
@settings(max_examples=2_000)
@given(data=st.data(), all_events=histories.events(), buckets=st.integers(1, 3))
def test_2000_histories(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    compare(data, all_events, buckets)


def compare(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    """Late steps, other ends and starts, log lines and results in messages of any cut, repeated;
    the command is interrupted after any object, and begins anew."""
    memory = MemoryStage(page_bytes=1_000, retention_days=36_500)
    histories.deliver(memory, data, all_events, buckets)
    before = invariants.final_state(memory, RUN)
    memory.dynamodb.items.clear()
    stage = stage_over(memory)
    found = list(objects_of(stage.s3, stage.bucket_name, keys.RUN_OBJECTS))
    until = data.draw(st.integers(0, len(found)))
    Resending.on(stage, dry_run=False).send(found[:until], lambda: None)
    resending = Resending.on(stage, dry_run=False)
    resending.send(found, lambda: None, at_once=4)

    def sleep(_: float) -> None:
        for sent in memory.sqs.queues.pop(stage.event_queue_url, []):
            assert memory.ingest(sent.body) == []
        memory.drain()

    under_way = UnderWay(stage, 0, within_s=600, sleep=sleep)
    check = Check(Recounting.on(stage, under_way.pause), under_way)
    wrong = [check(ref, sent) for ref, sent in resending.runs.items()]
    assert wrong == [None] * bool(all_events)
    steps = [event for event in all_events if isinstance(event, wire.Step)]
    assert [sent.steps for sent in resending.runs.values()] == [len(steps)] * bool(all_events)
    sleep(1)
    assert invariants.final_state(memory, RUN) == before
    invariants.counted_exactly(memory, RUN, steps)
    invariants.pointers_hold(memory, RUN)
    assert not memory.dead_letters()


def stage_over(memory: MemoryStage, **outputs: str) -> Stage:
    s3 = Buckets(memory) if memory.lake else memory.s3
    return Stage.of_outputs(
        {**OUTPUTS, "ApiUrl": "https://api", "RecountQueueUrl": RECOUNTS, **outputs},
        MemoryCloud(dynamodb=memory.dynamodb, s3=s3, sqs=memory.sqs),
    )


# -- the lake --------------------------------------------------------------------------------------


THE_RETENTION = {"RetentionDays": "10000"}
EARLIER = (0, 86_400 * SECOND, T0 - 631_152_000 * SECOND)
"""By nothing, by a day, and to 1990."""
LAKE = {"LakeUrl": "s3://l/lake/", "LakeRetentionDays": "36500"}


@settings(max_examples=100, deadline=None)
@given(data=st.data(), all_events=histories.events(), buckets=st.integers(1, 3))
def test_the_lake_keeps_what_does_not_come_back(
    data: st.DataObject, all_events: list[wire.Event], buckets: int
) -> None:
    lose_and_rebuild(data, all_events, buckets)


@pytest.mark.large
@pytest.mark.timeout(3_600)
@settings(max_examples=3_000, deadline=None)
@given(data=st.data(), all_events=histories.events(), buckets=st.integers(1, 3))
def test_3000_lakes(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    lose_and_rebuild(data, all_events, buckets)


def lose_and_rebuild(data: st.DataObject, all_events: list[wire.Event], buckets: int) -> None:
    """The run was written once or twice, under one day or two; then the table lost it, with its
    note or without. Events are too old by then, and objects have outlived the run: any of them."""
    memory = MemoryStage(page_bytes=1_000, retention_days=36_500, lake=True)
    assert memory.lake
    memory.lake.write_plain()
    events = [earlier(e, data.draw(st.sampled_from(EARLIER))) for e in all_events]
    events = data.draw(st.permutations(events))
    cut = data.draw(st.integers(0, len(events)))
    for part in ([*events[:cut], build.ended()], events[cut:]):
        histories.deliver(memory, data, part, buckets)
    before = calls_shown(memory)
    sort = data.draw(st.sampled_from(["", keys.LAKE]))
    note = {key: item for key, item in memory.dynamodb.items.items() if key[1] == sort}
    memory.dynamodb.items.clear()
    memory.dynamodb.items.update(note)
    for key in memory.s3.objects:
        if data.draw(st.integers(0, 3)) == 0:
            memory.s3.stored_at[key] = datetime(1990, 1, 1, tzinfo=UTC)

    stage = stage_over(memory, **LAKE, **THE_RETENTION)
    list(restore_notes(stage, None, None, at_once=2))
    Resending.on(stage, dry_run=False).send(
        objects_of(stage.s3, stage.bucket_name, keys.RUN_OBJECTS), lambda: None, at_once=2
    )
    for sent in memory.sqs.queues.pop(stage.event_queue_url, []):
        assert memory.ingest(sent.body) == []
        if data.draw(st.booleans()):
            memory.drain()
            assert calls_shown(memory) >= before
    memory.drain()
    assert not memory.dead_letters()
    assert calls_shown(memory) >= before
    if memory.items_of(RUN):
        memory.api.delete_run(RUN)
        memory.erase_all()
    assert memory.lake.versions_of(RUN) == []


def earlier(event: wire.Event, shift: int) -> wire.Event:
    if isinstance(event, wire.Step):
        ended_at = event.ended_at - shift
        return msgspec.structs.replace(
            event, started_at=event.started_at - shift, ended_at=ended_at
        )
    assert not isinstance(event, wire.InvocationEnded)
    return msgspec.structs.replace(event, at=event.at - shift)


def calls_shown(memory: MemoryStage) -> set[str]:
    """Of the one day on which the lake has the run, if it has."""
    assert memory.lake
    days = {day_in(key) for key in memory.lake.files_of(RUN)}
    assert len(days) <= 1
    runs, calls = (memory.lake.rows(table, RUN) for table in ("runs", "calls"))
    assert [row["agents_total"] for row in runs] == [len(calls)] * len(days)
    return {row["step_id"] for row in calls}
