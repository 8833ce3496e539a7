"""What a function publishes: one EMF blob a batch, no tenant or run among the dimensions."""

import json
from typing import Any

import pytest

from functions.adapters.telemetry import Telemetry


@pytest.fixture(autouse=True)
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED")


def published(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_counts_times_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    Telemetry("ingest").emit(
        {"Messages": 3, "Conflicts": 0, "WriteUnits": 4.0},
        {"StoreLag": [12, -5]},
        ["too_old", "not_json", "too_old"],
    )
    batch, *refusals = published(capsys)
    assert (batch["Messages"], batch["WriteUnits"], batch["StoreLag"]) == ([3], [4], [12, 0])
    assert "Conflicts" not in batch
    assert batch["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "runtally"
    assert batch["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]
    assert [(r["reason"], r["Rejected"]) for r in refusals] == [("too_old", [2]), ("not_json", [1])]
    assert set(refusals[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]) == {
        "service",
        "reason",
    }


def test_nothing_is_published_when_nothing_happened(capsys: pytest.CaptureFixture[str]) -> None:
    Telemetry("ingest").emit({"Messages": 0})
    assert published(capsys) == []


def test_batches_do_not_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """F7: each batch publishes its own."""
    telemetry = Telemetry("summarize")
    for _ in range(2):
        telemetry.emit({"Records": 1})
    assert [blob["Records"] for blob in published(capsys)] == [[1], [1]]
