"""The stream entry and the recount entry, driven by the files in events/."""

import json
from typing import Any

import pytest

from functions.core import keys
from functions.summarize import handler, recount_handler
from tests import build, invariants
from tests.build import RUN
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.memory_stage import RECOUNTS, MemoryStage

STREAM = event("summarize/four-steps-and-the-end")


def recorded() -> MemoryStage:
    """A stage in which ingest has done its part for what the stream event tells."""
    stage = MemoryStage()
    stage.ingest(*(r["body"] for r in event("ingest/run-in-three-messages")["Records"]))
    return stage


def test_a_batch_with_the_end_is_counted_and_summarised() -> None:
    stage = recorded()
    assert handler.process(STREAM, stage.summarize_parts) == {"batchItemFailures": []}
    totals, summary = stage.item(RUN, keys.TOTALS), stage.item(RUN, keys.SUMMARY)
    assert totals is not None
    assert summary is not None
    assert totals["agents_total"] == summary["agents_total"] == 4
    assert str(totals["cost_usd_total"]) == str(summary["cost_usd_total"]) == "0.019325"
    assert [(p["phase"], p["calls"], p["failed"]) for p in summary["phases_summary"]] == [
        ("plan", 1, 0),
        ("research", 2, 1),
        ("write", 1, 0),
    ]
    assert RECOUNTS not in stage.sqs.queues


@pytest.mark.parametrize("times", [2, 5])
def test_a_batch_that_comes_again_counts_once(times: int) -> None:
    """F17."""
    once, often = recorded(), recorded()
    handler.process(STREAM, once.summarize_parts)
    for _ in range(times):
        handler.process(STREAM, often.summarize_parts)
    assert invariants.final_state(often, RUN) == invariants.final_state(once, RUN)


def test_a_step_after_the_end_asks_for_a_recount_whenever_it_is_delivered() -> None:
    stage = recorded()
    stage.drain()
    stage.ingest(build.body(build.step(9, cost_usd="1")))
    late = stage.new_stream_records()
    for deliveries in (1, 2):
        stage.summarize(late)
        assert len(stage.sqs.queues[RECOUNTS]) == deliveries
    assert json.loads(stage.sqs.queues[RECOUNTS][0].body) == {
        "tenant_id": "acme",
        "run_id": "run-1",
        "agents_total": 5,
    }
    stage.drain()
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    assert (summary["agents_total"], summary["at_total"]) == (5, 5)


def test_a_request_that_a_summary_covers_reads_no_step() -> None:
    stage = recorded()
    stage.drain()
    stage.calls.made.clear()
    requests = event("recount/two-requests-for-one-run")
    only_covered = {"Records": requests["Records"][:1]}
    recount_handler.process(only_covered, stage.recount_parts)
    assert stage.calls.made == ["dynamodb.get_item"] * 2
    recount_handler.process(requests, stage.recount_parts)
    assert stage.calls.made.count("dynamodb.query") == 1


def test_a_failed_batch_becomes_a_recount_of_its_runs() -> None:
    stage = recorded()
    name = "aws/lambda/1f2e/shardId-00000001-a1b2/2026/11/29/2026-11-29T12.00.00-77aa"
    stage.failed_batches.objects[name] = json.dumps(event("recount/failed-batch-object")).encode()
    answer = recount_handler.process(event("recount/failed-batch"), stage.recount_parts)
    assert answer == {"batchItemFailures": []}
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    assert (summary["agents_total"], summary["at_total"]) == (4, 0)


def test_a_failed_batch_that_cannot_be_fetched_comes_again() -> None:
    batch = event("recount/failed-batch")
    answer = recount_handler.process(batch, recorded().recount_parts)
    assert answer == {"batchItemFailures": [{"itemIdentifier": batch["Records"][0]["messageId"]}]}


def broken(record: dict[str, Any], how: str) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(record))
    image = changed["dynamodb"]["NewImage"]
    if how == "unknown kind of item":
        changed["dynamodb"]["Keys"]["SK"]["S"] = image["SK"]["S"] = "WEIRD#1"
    elif how == "no run id":
        changed["dynamodb"]["Keys"]["PK"]["S"] = "PIPELINERUN#acme#"
    elif how == "a cost of 39 digits":
        image["cost_usd"] = {"N": "1" * 39}
    else:
        del image["started_at"]
    return changed


@pytest.mark.parametrize(
    "how", ["unknown kind of item", "no run id", "a cost of 39 digits", "an older schema"]
)
def test_a_record_that_cannot_be_read_stops_the_batch_before_it(how: str) -> None:
    """F20: what comes after it must not move a mark past it."""
    stage = MemoryStage()
    stage.ingest(build.body(*(build.step(n) for n in range(1, 21))))
    records = stage.new_stream_records()
    records[7] = broken(records[7], how)
    assert stage.summarize(records) == [records[7]["dynamodb"]["SequenceNumber"]]
    totals = stage.item(RUN, keys.TOTALS)
    assert totals is not None
    assert totals["agents_total"] == 7


def test_a_run_that_cannot_be_counted_costs_the_others_nothing() -> None:
    stage = MemoryStage()
    other = keys.RunRef("other", "run-2")
    stage.ingest(build.body(build.step(1)), build.body(build.step(2), run=other))
    records = stage.new_stream_records()

    def throttle_first(call: str, when: str) -> None:
        if call == "dynamodb.update_item":
            stage.calls.hook = lambda call, when: None
            raise client_error(call, "ThrottlingException")

    stage.calls.hook = throttle_first
    assert stage.summarize(records) == [records[0]["dynamodb"]["SequenceNumber"]]
    assert stage.item(RUN, keys.TOTALS) is None
    assert (stage.item(other, keys.TOTALS) or {})["agents_total"] == 1
    assert stage.summarize(records) == []
    assert (stage.item(RUN, keys.TOTALS) or {})["agents_total"] == 1
    assert (stage.item(other, keys.TOTALS) or {})["agents_total"] == 1


def test_nothing_is_written_for_a_deleted_or_an_expired_run() -> None:
    for change in ("deleted", "expired"):
        stage = recorded()
        key = (keys.run_partition(RUN), keys.RUN)
        if change == "deleted":
            stage.dynamodb.items[key]["deleted_at"] = {"N": "1"}
        else:
            del stage.dynamodb.items[key]
        before = dict(stage.dynamodb.items)
        handler.process(STREAM, stage.summarize_parts)
        recount_handler.process(event("recount/two-requests-for-one-run"), stage.recount_parts)
        assert stage.dynamodb.items == before
