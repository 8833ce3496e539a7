"""The SQS entry, driven by the files in events/ingest/."""

import hashlib

import pytest

from functions.core import keys
from functions.ingest.handler import process
from tests import build, invariants
from tests.build import RUN
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.memory_stage import MemoryStage

CLAIMED = build.body(build.step(20, payload={"text": "长" * 700_000})).encode()


def test_a_run_in_three_messages_is_stored_whole() -> None:
    stage = MemoryStage()
    answer = process(event("ingest/run-in-three-messages"), stage.ingest_parts)
    assert answer == {"batchItemFailures": []}
    stage.drain()

    run = stage.item(RUN, keys.RUN)
    assert run is not None
    assert (run["status"], run["pipeline"]) == ("succeeded", "research")
    assert run["start"]["session_id"] == "s-1"
    assert run["start"]["attributes"] == '{"team":"search"}'
    assert keys.OPEN_RUNS_PARTITION not in run
    steps = stage.items_of(RUN, keys.STEP_PREFIX)
    assert [step["phase"] for step in steps] == ["plan", "research", "research", "write"]
    assert b'"number":9007199254740993' in stage.line_behind(RUN, steps[3]["pointer"])
    assert steps[2]["error"] == "TimeoutError: no answer in 30 s"
    (log,) = stage.items_of(RUN, keys.LOG_PREFIX)
    assert log["lines"] == ["fetch failed, going on without it"]
    result = stage.item(RUN, keys.RESULT)
    assert result is not None
    assert (result["at"], result["digest"]) == (run["end"]["at"], run["end"]["digest"])
    assert result["result"] == "Three sources were found."
    assert len(stage.s3.objects) == 3  # one a message
    invariants.pointers_hold(stage, RUN)


def test_ten_messages_of_which_five_are_refused() -> None:
    """F2: the rest is stored, exactly those are dead-lettered, nothing is raised or redelivered."""
    stage = MemoryStage()
    sha256 = hashlib.sha256(CLAIMED).hexdigest()
    stage.s3.objects[f"inbox/acme/run-1/{sha256}"] = CLAIMED
    batch = event("ingest/ten-messages-five-refused")

    assert process(batch, stage.ingest_parts) == {"batchItemFailures": []}

    stored = [item["SK"] for item in stage.items_of(RUN, keys.STEP_PREFIX)]
    expected = [build.step_id(n) for n in (1, 4, 5, 8, 11, 20)]
    assert stored == [keys.STEP_PREFIX + step_id for step_id in expected]
    bodies = [record["body"] for record in batch["Records"]]
    dead = [(d["reason"], d["field"], d["body"]) for d in stage.dead_letters()]
    assert dead == [
        ("not_json", "message", bodies[0]),
        ("invalid_field", "message", bodies[3]),
        ("invalid_field", "run_id", bodies[4]),
        ("not_finite", "events[1].cost_usd", bodies[7]),
        ("unknown_version", "v", bodies[8]),
    ]
    run = stage.item(RUN, keys.RUN)
    assert run is not None
    assert run["status"] == "succeeded"


def test_when_the_dead_letter_queue_does_not_answer_the_message_comes_again() -> None:
    stage = MemoryStage()

    def refuse(call: str, when: str) -> None:
        if call == "sqs.send_message" and when == "before":
            raise client_error(call, "ServiceUnavailable")

    stage.calls.hook = refuse
    assert stage.ingest("not JSON", build.body(build.step(1))) == ["0"]
    stage.calls.hook = lambda call, when: None
    assert stage.ingest("not JSON") == []
    assert [letter["body"] for letter in stage.dead_letters()] == ["not JSON"]


@pytest.mark.parametrize("service", ["dynamodb", "s3"])
def test_while_a_store_is_down_messages_come_again_and_then_nothing_is_missing(
    service: str,
) -> None:
    """F44: accepted, then the store fails for longer than all retries."""
    stage = MemoryStage()

    def down(call: str, when: str) -> None:
        if call.startswith(service) and when == "before":
            raise client_error(call, "ThrottlingException")

    bodies = [build.body(build.step(n)) for n in range(1, 11)]
    stage.calls.hook = down
    assert stage.ingest(*bodies) == [str(n) for n in range(10)]
    stage.calls.hook = lambda call, when: None
    assert stage.ingest(*bodies) == []
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 10
    assert stage.dead_letters() == []


def test_a_defect_met_in_one_message_costs_its_neighbours_nothing() -> None:
    stage = MemoryStage()

    def break_once(call: str, when: str) -> None:
        if call == "s3.put_object":
            stage.calls.hook = lambda call, when: None
            raise ZeroDivisionError("a defect")

    stage.calls.hook = break_once
    assert stage.ingest(build.body(build.step(1)), build.body(build.step(2))) == ["0"]
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 1


def test_an_empty_batch_is_no_error() -> None:
    """F1."""
    assert process({"Records": []}, MemoryStage().ingest_parts) == {"batchItemFailures": []}


def test_a_warm_container_carries_nothing_over() -> None:
    """F7: a failed batch, a good one, another tenant's."""
    stage = MemoryStage()

    def down(call: str, when: str) -> None:
        raise client_error(call, "ThrottlingException")

    stage.calls.hook = down
    assert stage.ingest(build.body(build.step(1))) == ["0"]
    stage.calls.hook = lambda call, when: None
    other = keys.RunRef("other", "run-1")
    assert stage.ingest(build.body(build.step(2))) == []
    assert stage.ingest(build.body(build.step(3), run=other)) == []
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 1
    (item,) = stage.items_of(other, keys.STEP_PREFIX)
    assert "acme" not in str(item)
