"""`run.ended`: told once its summary stands, at least once, and to nobody's harm."""

import json
from typing import Any

import pytest

from functions.core import keys
from functions.core.keys import RunRef
from functions.summarize import tally
from tests import build
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.memory_stage import RECOUNTS, MemoryStage


def ended(stage: MemoryStage) -> list[dict[str, Any]]:
    return stage.events.details("run.ended")


def test_whoever_reads_the_run_on_the_event_finds_the_summary() -> None:
    stage = MemoryStage()
    seen: list[Any] = []

    def reads(call: str, when: str) -> None:
        if (call, when) == ("events.put_events", "before"):
            seen.append(stage.item(RUN, keys.SUMMARY))

    stage.calls.hook = reads
    stage.ingest(build.body(build.started(), build.step(1, cost_usd="0.1"), build.ended()))
    stage.drain()
    (summary,) = seen
    assert summary["agents_total"] == 1
    (event,) = ended(stage)
    assert (event["status"], event["pipeline"]) == ("succeeded", "research")
    assert event["totals"]["cost_usd_total"] == "0.1"


def test_a_run_too_large_to_be_recounted_here_is_told_by_who_recounts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "RECOUNT_HERE", 1)
    stage = MemoryStage()
    stage.ingest(build.body(build.started(), build.step(1), build.step(2), build.ended()))
    stage.summarize(stage.new_stream_records())
    assert ended(stage) == []
    assert stage.recount() == []
    assert [event["totals"]["agents_total"] for event in ended(stage)] == [2]


def test_a_recount_alone_is_no_news() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.started(), build.step(1), build.ended()))
    stage.drain()
    stage.ingest(build.body(build.step(2)))  # asks for a recount
    stage.ingest(build.body(build.started(at=build.T0 - 1)))  # changes RUN, which has its end
    stage.drain()
    assert len(ended(stage)) == 1


def test_an_end_that_takes_another_s_place_is_told_too() -> None:
    stage = MemoryStage()
    for at, status in ((9, "failed"), (8, "succeeded"), (10, "cancelled")):
        end = build.ended(at=build.T0 + at * build.SECOND, status=status)
        stage.ingest(build.body(end))
        stage.drain()
    assert [event["status"] for event in ended(stage)] == ["failed", "succeeded"]
    assert len({event["dedupe_id"] for event in ended(stage)}) == 2


def test_a_batch_that_comes_again_tells_again_under_the_same_id() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.ended()))
    records = stage.new_stream_records()
    assert stage.summarize(records) == stage.summarize(records) == []
    once, again = ended(stage)
    assert once["dedupe_id"] == again["dedupe_id"]


def many(stage: MemoryStage) -> list[RunRef]:
    refs = [RunRef("acme", f"run-{n}") for n in range(23)]
    for ref in refs:
        stage.ingest(build.body(build.step(1), build.ended(), run=ref))
    return refs


def test_a_batch_of_ends_takes_a_request_each_ten() -> None:
    stage = MemoryStage()
    many(stage)
    stage.calls.made.clear()
    stage.summarize(stage.new_stream_records())
    assert stage.calls.made.count("events.put_events") == 3
    assert len(ended(stage)) == 23


def test_what_is_not_taken_is_told_by_a_recount_and_holds_up_no_counting() -> None:
    stage = MemoryStage()
    many(stage)
    stage.events.refuses = lambda detail: detail["run_id"] in {"run-3", "run-15"}
    assert stage.summarize(stage.new_stream_records()) == []
    asked = [json.loads(sent.body) for sent in stage.sqs.queues[RECOUNTS]]
    assert {request["run_id"]: request["announce"] for request in asked} == {
        "run-3": True,
        "run-15": True,
    }
    failed = stage.recount()
    assert len(failed) == 2  # still refused: the queue brings them again
    stage.events.refuses = lambda detail: False
    assert stage.recount() == []
    assert {event["run_id"] for event in ended(stage)} == {f"run-{n}" for n in range(23)}


def test_without_eventbridge_and_queue_the_batch_comes_again() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.ended()))
    records = stage.new_stream_records()

    def down(call: str, when: str) -> None:
        if call.startswith(("events", "sqs")):
            raise client_error(call, "InternalServerError")

    stage.calls.hook = down
    assert stage.summarize(records) == [records[1]["dynamodb"]["SequenceNumber"]]  # of the end
    stage.calls.hook = lambda call, when: None
    assert stage.summarize(records) == []
    assert len(ended(stage)) == 1


def test_an_end_behind_a_run_that_fails_is_told_once_however_often_that_fails() -> None:
    stage = MemoryStage()
    first, broken, last = (RunRef("acme", f"run-{n}") for n in range(3))
    stage.ingest(build.body(build.step(1), build.ended(), run=first))
    stage.ingest(build.body(build.step(1), run=last))
    stage.ingest(build.body(build.step(1), run=broken))
    stage.ingest(build.body(build.ended(), run=last))
    records = stage.new_stream_records()
    run = stage.dynamodb.items[keys.item_of_run(broken, keys.RUN)]
    run["v"] = {"N": "99"}
    for _ in range(3):
        (resume_at,) = stage.summarize(records)
        # The first run's end stands before what failed, the last one's behind it, as its step not.
        records = records[[r["dynamodb"]["SequenceNumber"] for r in records].index(resume_at) :]
        assert [event["run_id"] for event in ended(stage)] == [first.run_id]
    run["v"] = {"N": "1"}
    assert stage.summarize(records) == []
    assert [event["run_id"] for event in ended(stage)] == [first.run_id, last.run_id]


@pytest.mark.parametrize("with_its_end", [True, False])
def test_an_end_in_a_batch_that_was_given_up_is_told_by_its_recount(*, with_its_end: bool) -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.ended()))
    step, end = stage.new_stream_records()
    kept = {"payload": json.dumps({"Records": [step, end] if with_its_end else [step]})}
    stage.failed_batches.put_object(Key="failed", Body=json.dumps(kept).encode())
    news = json.dumps({"Records": [{"s3": {"object": {"key": "failed"}}}]})
    stage.sqs.send_message(QueueUrl=RECOUNTS, MessageBody=news)
    assert stage.recount() == []
    assert len(ended(stage)) == int(with_its_end)


def test_nobody_is_told_of_a_deleted_run() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.ended()))
    records = stage.new_stream_records()
    stage.api.delete_run(RUN)
    stage.summarize(records)
    assert stage.events.taken == []
