"""What summarize and recount tell CloudWatch about a batch."""

import json
import time

import pytest

from functions.core.keys import RunRef
from functions.summarize import recount_handler
from functions.summarize.telling import RUNS_TOLD
from tests import build, published
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.memory_stage import RECOUNTS, MemoryStage

pytestmark = pytest.mark.usefixtures("metrics_on")


def test_counts_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    stage = MemoryStage()
    ago = time.time_ns() - 7_000_000_000
    stage.ingest(build.body(build.step(1, ended_at=ago), build.ended()))
    records = stage.new_stream_records()
    published.read(capsys)
    stage.summarize(records)
    metrics = published.read(capsys)
    assert (metrics["Records"], metrics["StepsCounted"], metrics["Recounts"]) == (2, 1, 1)
    assert 7_000 <= metrics["CountLag"] < 60_000
    assert "RecountDrift" not in metrics
    stage.summarize(records)
    metrics = published.read(capsys)
    assert "StepsCounted" not in metrics
    assert "CountLag" not in metrics


def test_drift_and_requests(capsys: pytest.CaptureFixture[str]) -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1), build.step(2), build.ended()))
    *_, end = stage.new_stream_records()
    published.read(capsys)
    stage.summarize([end])
    assert published.read(capsys)["RecountDrift"] == 2
    stage.ingest(build.body(build.step(3)))
    stage.summarize(stage.new_stream_records())
    assert published.read(capsys)["RecountsRequested"] == 1
    assert stage.recount() == []
    metrics = published.read(capsys)
    assert (metrics["Recounts"], metrics["RecountDrift"]) == (1, 2)


def test_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.step(1)))

    def down(call: str, when: str) -> None:
        raise client_error(call, "ThrottlingException")

    stage.calls.hook = down
    stage.summarize(stage.new_stream_records())
    assert published.read(capsys) == {"Records": 1, "RunsFailed": 1, **ingested()}
    stage.calls.hook = lambda call, when: None
    stage.sqs.send_message(QueueUrl=RECOUNTS, MessageBody="no request")
    stage.recount()
    assert published.read(capsys) == {"RecountsFailed": 1}


def failed_batch(stage: MemoryStage, runs: int) -> str:
    """The news of a batch that was given up, with the end of so many runs in it."""
    for n in range(runs):
        stage.ingest(build.body(build.step(1), build.ended(), run=RunRef("acme", f"run-{n:02}")))
    notification: str = event("recount/failed-batch")["Records"][0]["body"]
    (told,) = json.loads(notification)["Records"]
    batch = {"payload": {"Records": stage.new_stream_records()}}
    stage.failed_batches.objects[told["s3"]["object"]["key"]] = json.dumps(batch).encode()
    return notification


def recount(stage: MemoryStage, *bodies: str) -> int:
    """How many messages of these come again."""
    records = [{"messageId": f"m-{n}", "body": body} for n, body in enumerate(bodies)]
    answer = recount_handler.process({"Records": records}, stage.recount_parts)
    return len(answer["batchItemFailures"])


def test_a_failed_batch_counts_once_however_often_its_message_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = MemoryStage()
    notification = failed_batch(stage, runs=3)
    published.read(capsys)

    def down(call: str, when: str) -> None:
        if call.startswith(failing):
            raise client_error(call, "ThrottlingException")

    stage.calls.hook = down
    for failing in ("s3.", "dynamodb."):  # noqa: B007 - read by the hook
        assert recount(stage, notification) == 1
        assert published.read(capsys) == {"RecountsFailed": 1}, "one message, of three runs"
    stage.calls.hook = lambda call, when: None
    assert recount(stage, notification, "no request") == 1
    metrics = published.read(capsys)
    assert (metrics["FailedBatches"], metrics["RecountsFailed"], metrics["Recounts"]) == (1, 1, 3)


def test_the_line_of_a_batch_names_so_many_runs_at_most(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stage = MemoryStage()
    notification = failed_batch(stage, runs=RUNS_TOLD + 1)
    capsys.readouterr()
    assert recount(stage, notification) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (named,) = [line["runs"] for line in lines if "runs" in line]
    assert len(named) == RUNS_TOLD


def ingested() -> dict[str, float]:
    """What the ingest before it published."""
    return {"Messages": 1, "StepsStored": 1, "StoreLag": 3_598_000, "WriteUnits": 4}


def test_of_two_requests_the_one_that_asks_for_more_stands() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(*(build.step(n) for n in range(1, 4)), build.ended()))
    stage.drain()
    for total in (4, 1):  # the summary covers 3: only the first asks for anything new
        body = f'{{"tenant_id":"acme","run_id":"run-1","agents_total":{total}}}'
        stage.sqs.send_message(QueueUrl=RECOUNTS, MessageBody=body)
    stage.calls.made.clear()
    assert stage.recount() == []
    assert stage.calls.made.count("dynamodb.query") == 1
