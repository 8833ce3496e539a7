"""The dead letters of the work queues: kept, and their invocations failed."""

import hashlib

import pytest

from functions.api.dead_jobs_handler import process
from tests import build, published
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.memory_stage import MemoryStage


def kept_as(body: str) -> str:
    return f"dead-letters/{hashlib.sha256(body.encode()).hexdigest()}"


@pytest.mark.usefixtures("metrics_on")
def test_a_dead_job_fails_its_invocation_and_what_is_no_job_is_kept_and_told(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    stage = MemoryStage()
    stage.dead_jobs_parts.telemetry.logger.setLevel("INFO")
    invocation_id = stage.invoke(client_token="t-1").invocation_id
    batch = event("api/dead-jobs")

    assert process(batch, stage.dead_jobs_parts) == {"batchItemFailures": []}

    shown = stage.read_invocation(invocation_id)
    assert (shown.status, shown.reason, shown.result) == ("failed", "job_failed", None)
    assert shown.error == "the job was delivered as often as its queue allows, without an answer"
    bodies = [record["body"] for record in batch["Records"]]
    assert stage.s3.objects == {kept_as(body): body.encode() for body in bodies}
    metrics = published.read(capsys)
    assert (metrics["Messages"], metrics["InvocationsFailed"]) == (2, 1)
    assert metrics["Rejected.not_json"] == 1
    assert "MessagesFailed" not in metrics
    job, none = (vars(log) for log in caplog.records)
    assert (job["tenant_id"], job["invocation_id"]) == ("acme", invocation_id)
    assert (none["reason"], none["kept_as"]) == ("not_json", kept_as(bodies[1]))
    assert not any(body in str(log) for body in bodies for log in (job, none))


def test_what_was_answered_stays_so(stage: MemoryStage) -> None:
    invocation_id = stage.invoke().invocation_id
    stage.ingest(build.answer_body(build.answer(invocation_id)))
    before = stage.read_invocation(invocation_id)
    assert stage.dead_jobs(*stage.jobs()) == []
    assert stage.read_invocation(invocation_id) == before


@pytest.mark.usefixtures("metrics_on")
def test_a_dead_job_of_no_invocation_is_kept(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.invoke()
    stage.dynamodb.items.clear()
    assert stage.dead_jobs(*stage.jobs()) == []
    assert stage.dynamodb.items == {}
    assert list(stage.s3.objects) == [kept_as(stage.jobs()[0])]
    assert "InvocationsFailed" not in published.read(capsys)


@pytest.mark.parametrize("call", ["s3.put_object", "dynamodb.update_item"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_message_that_met_a_fault_comes_again_alone(
    stage: MemoryStage, call: str, when: str
) -> None:
    ids = [stage.invoke().invocation_id for _ in range(3)]
    seen = 0

    def fault(made: str, moment: str) -> None:
        nonlocal seen
        seen += (made, moment) == (call, when)
        if seen == 2:
            seen += 1
            raise client_error(made, "InternalServerError")

    stage.calls.hook = fault
    jobs = stage.jobs()
    assert stage.dead_jobs(*jobs) == ["1"]
    assert stage.dead_jobs(jobs[1]) == []
    assert {stage.read_invocation(one).reason for one in ids} == {"job_failed"}
    assert set(stage.s3.objects) == set(map(kept_as, jobs))


def test_a_defect_met_in_one_message_costs_its_neighbours_nothing(stage: MemoryStage) -> None:
    ids = [stage.invoke().invocation_id for _ in range(2)]

    def break_once(call: str, when: str) -> None:
        stage.calls.hook = lambda call, when: None
        raise ZeroDivisionError("a defect")

    stage.calls.hook = break_once
    assert stage.dead_jobs(*stage.jobs()) == ["0"]
    assert [stage.read_invocation(one).status for one in ids] == ["pending", "failed"]


def test_a_body_is_kept_before_its_invocation_fails(stage: MemoryStage) -> None:
    stage.invoke()
    stage.calls.made.clear()
    stage.dead_jobs(*stage.jobs())
    assert stage.calls.made == ["s3.put_object", "dynamodb.update_item"]


def test_a_body_with_half_a_surrogate_pair_is_kept_as_it_is(stage: MemoryStage) -> None:
    assert stage.dead_jobs("\ud800") == []
    assert list(stage.s3.objects.values()) == [b"\xed\xa0\x80"]


def test_an_empty_batch_is_no_error(stage: MemoryStage) -> None:
    """F1."""
    assert process({"Records": []}, stage.dead_jobs_parts) == {"batchItemFailures": []}
