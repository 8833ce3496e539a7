"""What ingest tells CloudWatch about a batch."""

from typing import Any

import pytest

from functions.core import keys
from tests import build, published
from tests.build import RUN
from tests.memory_stage import NOW_NS, MemoryStage

pytestmark = pytest.mark.usefixtures("metrics_on")


@pytest.fixture
def stage() -> MemoryStage:
    made = MemoryStage()
    made.ingest_parts.telemetry.logger.setLevel("INFO")
    return made


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Each line's message and all that was added to it."""
    return [{**vars(record), "message": record.getMessage()} for record in caplog.records]


def test_steps_bytes_and_lag(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    late = build.step(1, ended_at=NOW_NS - 5_000_000_000, payload="1234")
    later = build.step(2, ended_at=NOW_NS - 3_000_000_000, payload="12")
    stage.ingest(build.body(build.started(), late, later), build.body(build.log(1, "x")))
    assert published.read(capsys) == {
        "Messages": 2,
        "StepsStored": 2,
        "PayloadBytes": 10,
        "StoreLag": 3_000,
        "WriteUnits": 6,
    }
    assert logged(caplog) == []


def test_duplicates_and_conflicts(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    stage.ingest(build.body(build.step(1), build.step(2)))
    published.read(capsys)
    stage.ingest(build.body(build.step(1), build.step(2, name="other"), build.step(3)))
    metrics = published.read(capsys)
    assert metrics["StepsStored"] == metrics["Duplicates"] == metrics["Conflicts"] == 1
    assert metrics["RefusedWrites"] == 2
    (log,) = logged(caplog)
    assert (log["message"], log["ids"], log["run_id"]) == ("conflict", (build.step_id(2),), "run-1")


def test_rejections_by_reason_and_without_the_body(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    bad = build.body(build.step(1, cost_usd="SECRET"), build.step(2, status="SECRET"))
    stage.ingest("SECRET no JSON", bad, build.body(build.step(3, started_at=0, payload="SECRET")))
    metrics = published.read(capsys)
    logs = logged(caplog)
    assert metrics["Messages"] == 3
    assert metrics["Rejected.not_json"] == metrics["Rejected.too_old"] == 1
    assert metrics["Rejected.invalid_field"] == 2
    assert [log["field"] for log in logs] == [
        "",
        "events[0].cost_usd",
        "events[1].status",
        "events[0].started_at",
    ]
    assert {log["message_id"] for log in logs} == {"0", "1", "2"}
    assert "SECRET" not in str(logs)


def test_what_comes_after_a_deletion(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    stage.ingest(build.body(build.started()))
    stage.dynamodb.items[keys.run_partition(RUN), keys.RUN]["deleted_at"] = {"N": "1"}
    published.read(capsys)
    stage.ingest(build.body(build.step(1), build.step(2)))
    assert published.read(capsys) == {"Messages": 1, "AfterDeletion": 2}
