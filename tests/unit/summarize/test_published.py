"""What summarize and recount tell CloudWatch about a batch."""

import time

import pytest

from tests import build, published
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
