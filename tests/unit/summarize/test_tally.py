"""Counting a batch: marks, the preview beside the totals, and when a recount is due, and where."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.core import keys
from functions.core.keys import RunRef
from functions.summarize import tally
from runtally import wire
from tests import build, invariants
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.memory_stage import RECOUNTS, MemoryStage


def only_on(call: str, when: str, act: Callable[[], None]) -> Callable[[str, Any], None]:
    """A hook that acts once, at that call."""
    left = [act]

    def hook(made: str, at: str) -> None:
        if made == call and at == when and left:
            left.pop()()

    return hook


def requests(stage: MemoryStage) -> list[dict[str, Any]]:
    return [json.loads(sent.body) for sent in stage.sqs.queues.get(RECOUNTS, [])]


def test_the_preview_is_filled_even_when_the_totals_are_past_it() -> None:
    """An invocation that died between its two writes: the count is no reason to leave it out."""
    stage = MemoryStage()
    stage.ingest(build.body(*(build.step(n) for n in range(1, 151))))
    records = stage.new_stream_records()
    updates = 0

    def die_before_the_preview(call: str, when: str) -> None:
        nonlocal updates
        updates += call == "dynamodb.update_item" and when == "before"
        if updates == 2:
            raise KeyboardInterrupt

    stage.calls.hook = die_before_the_preview
    with pytest.raises(KeyboardInterrupt):
        stage.summarize(records)
    stage.calls.hook = lambda call, when: None
    assert (stage.item(RUN, keys.TOTALS) or {})["agents_total"] == 150
    assert stage.item(RUN, keys.PREVIEW) is None
    assert stage.summarize(records) == []
    assert len((stage.item(RUN, keys.PREVIEW) or {})["agents"]) == 100


def test_the_preview_waits_for_a_batch_that_was_counted_but_not_shown() -> None:
    """Two buckets: the other's batches may come between the two writes of one that died."""
    stage = MemoryStage()
    by_bucket: dict[int, list[wire.Step]] = {0: [], 1: []}
    for step in (build.step(n) for n in range(1, 301)):
        by_bucket[keys.bucket_of(step.step_id, 2)].append(step)
    stage.ingest(build.body(*by_bucket[0][:60], buckets=2))
    died = stage.new_stream_records()
    stage.ingest(build.body(*by_bucket[1][:60], buckets=2))
    between = stage.new_stream_records()
    stage.ingest(build.body(*by_bucket[1][60:120], buckets=2))
    updates = 0

    def die_before_the_preview(call: str, when: str) -> None:
        nonlocal updates
        updates += call == "dynamodb.update_item" and when == "before"
        if updates == 2:
            raise KeyboardInterrupt

    stage.calls.hook = die_before_the_preview
    with pytest.raises(KeyboardInterrupt):
        stage.summarize(died)
    stage.calls.hook = lambda call, when: None
    stage.summarize(between)
    assert len((stage.item(RUN, keys.PREVIEW) or {})["agents"]) == 60
    stage.summarize(stage.new_stream_records())  # 180 are counted by now
    stage.summarize(died)
    invariants.counted_exactly(stage, RUN, [*by_bucket[0][:60], *by_bucket[1][:120]])


def test_a_full_preview_is_marked_and_then_left_alone() -> None:
    stage = MemoryStage()
    for first in (1, 61, 121):
        stage.ingest(build.body(*(build.step(n) for n in range(first, first + 60))))
        stage.calls.made.clear()
        stage.summarize(stage.new_stream_records())
    assert (stage.item(RUN, keys.TOTALS) or {})["preview_full"]
    assert stage.calls.made == ["dynamodb.get_item", "dynamodb.update_item"]


def test_a_batch_is_counted_by_mark_whatever_its_order() -> None:
    stage = MemoryStage()
    steps = [build.step(n) for n in range(1, 9)]
    stage.ingest(build.body(*steps))
    records = stage.new_stream_records()
    for _ in range(2):
        assert stage.summarize([*reversed(records), records[3]]) == []
    invariants.counted_exactly(stage, RUN, steps)


def test_of_a_run_that_fails_the_first_record_is_the_one_to_resume_at() -> None:
    stage = MemoryStage()
    other = RunRef("other", "run-2")
    stage.ingest(build.body(build.step(1), run=other))
    stage.ingest(build.body(*(build.step(n) for n in range(1, 6))))
    stage.ingest(build.body(build.step(2), run=other))
    records = stage.new_stream_records()

    def fail() -> None:
        raise client_error("UpdateItem", "ThrottlingException")

    updates = 0

    def second_update(call: str, when: str) -> None:
        nonlocal updates
        updates += call == "dynamodb.update_item" and when == "before"
        if updates == 3:  # the other run's totals and preview came first
            stage.calls.hook = lambda call, when: None
            fail()

    stage.calls.hook = second_update
    assert stage.summarize(records) == [records[1]["dynamodb"]["SequenceNumber"]]


def test_runs_up_to_2000_steps_are_recounted_here_larger_ones_through_the_queue() -> None:
    for steps, here in ((tally.RECOUNT_HERE, True), (tally.RECOUNT_HERE + 1, False)):
        stage = MemoryStage()
        stage.ingest(build.body(*(build.step(n) for n in range(1, steps + 1)), build.ended()))
        stage.summarize(stage.new_stream_records())
        assert (stage.item(RUN, keys.SUMMARY) is not None) == here
        asked = {"tenant_id": "acme", "run_id": "run-1", "announce": True}
        assert requests(stage) == ([] if here else [asked])
        assert (stage.item(RUN, keys.TOTALS) or {})["ended"]


def test_one_invocation_recounts_5000_steps_and_leaves_the_rest_to_the_queue() -> None:
    stage = MemoryStage()
    runs = [RunRef("acme", f"run-{n}") for n in range(3)]
    for run in runs:
        steps = (build.step(n) for n in range(1, tally.RECOUNT_HERE + 1))
        stage.ingest(build.body(*steps, build.ended(), run=run))
    stage.summarize(stage.new_stream_records())
    assert [stage.item(run, keys.SUMMARY) is not None for run in runs] == [True, True, False]
    assert [request["run_id"] for request in requests(stage)] == ["run-2"]


def test_a_recount_marks_an_ended_run_and_no_other() -> None:
    for end in ([], [build.ended()]):
        stage = MemoryStage()
        stage.ingest(build.body(build.step(1), *end))
        stage.recount_parts.recount(RUN, None)
        assert (stage.item(RUN, keys.TOTALS) or {}).get("ended", False) == bool(end)


def test_a_recount_reads_the_totals_before_the_steps() -> None:
    """A step that is stored and counted while a recount reads must not look covered by it."""
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.ended()))
    stage.summarize(stage.new_stream_records())
    stage.ingest(build.body(build.step(2)))
    before = stage.new_stream_records()
    late = build.step(3)

    def store_and_count() -> None:
        stage.calls.hook = lambda call, when: None
        stage.ingest(build.body(late))
        stage.summarize([*before, *stage.new_stream_records()])

    stage.calls.hook = only_on("dynamodb.query", "after", store_and_count)
    stage.recount_parts.recount(RUN, None)
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    assert (summary["agents_total"], summary["at_total"]) == (2, 1)
    stage.drain()
    invariants.counted_exactly(stage, RUN, [build.step(1), build.step(2), late])


def test_a_recount_says_how_far_the_totals_were_off() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(*(build.step(n, cost_usd="1") for n in range(1, 4))))
    found = stage.recount_parts.recount(RUN, None)
    assert found is not None
    assert (found.steps, found.drift) == (3, 3)
    stage.summarize(stage.new_stream_records())
    found = stage.recount_parts.recount(RUN, None)
    assert found is not None
    assert found.drift == 0
    stage.dynamodb.items[keys.run_partition(RUN), keys.TOTALS]["cost_usd_total"] = {"N": "2"}
    found = stage.recount_parts.recount(RUN, None)
    assert found is not None
    assert found.drift == 1


def test_agents_of_a_phase_stand_in_the_runs_order_whatever_their_bucket() -> None:
    stage = MemoryStage()
    steps = [build.step(n, agent=f"agent {n}") for n in range(1, 8)]
    stage.ingest(build.body(*steps, build.ended(), buckets=5))
    stage.drain()
    (phase,) = (stage.item(RUN, keys.SUMMARY) or {})["phases_summary"]
    assert phase["agents"] == [f"agent {n}" for n in range(1, 8)]


@pytest.mark.parametrize(
    "body",
    [
        "x", "[]", "null", "1", "{}", '{"tenant_id":"acme"}', '{"Records":5}',
        '{"Records":[{"s3":5}]}', '{"tenant_id":{},"run_id":"r"}',
        '{"tenant_id":"a#","run_id":"r"}', '{"tenant_id":"a","run_id":"r","agents_total":"many"}',
    ],
)  # fmt: skip
def test_a_message_that_is_no_request_costs_the_others_nothing(body: str) -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.ended()))
    good = '{"tenant_id":"acme","run_id":"run-1","agents_total":null}'
    for text in (body, good):
        stage.sqs.send_message(QueueUrl=RECOUNTS, MessageBody=text)
    bad_id = stage.sqs.queues[RECOUNTS][0].message_id
    assert stage.recount() == [bad_id]
    assert stage.item(RUN, keys.SUMMARY) is not None


def test_a_step_item_that_cannot_be_read_fails_its_own_run_only() -> None:
    stage = MemoryStage()
    other = RunRef("other", "run-2")
    stage.ingest(build.body(build.step(1)), build.body(build.step(2), run=other))
    key = (keys.run_partition(RUN), keys.STEP_PREFIX + build.step_id(1))
    del stage.dynamodb.items[key]["started_at"]
    for run in (RUN, other):
        request = {"tenant_id": run.tenant_id, "run_id": run.run_id, "agents_total": None}
        stage.sqs.send_message(QueueUrl=RECOUNTS, MessageBody=json.dumps(request))
    assert len(stage.recount()) == 1
    assert stage.item(RUN, keys.SUMMARY) is None
    assert stage.item(other, keys.SUMMARY) is not None
