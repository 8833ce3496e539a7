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
    assert refusals[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [
        ["service"],
        ["service", "reason"],
    ]


def test_what_a_batch_was_about_stands_on_its_line_once_and_is_no_metric(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Telemetry("summarize").emit({"Records": 1}, {"StepTime": range(150)}, about={"took_ms": 7})
    first, last = published(capsys)
    assert (len(first["StepTime"]), len(last["StepTime"])) == (100, 50)
    assert ("took_ms" in first, last["took_ms"]) == (False, 7)
    metrics = last["_aws"]["CloudWatchMetrics"][0]["Metrics"]
    assert [metric["Name"] for metric in metrics] == ["StepTime", "Records"]


def test_each_stage_has_a_namespace_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "runtally/dev")
    Telemetry("ingest").emit({"Messages": 1})
    (batch,) = published(capsys)
    assert batch["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "runtally/dev"


def test_nothing_is_published_when_nothing_happened(capsys: pytest.CaptureFixture[str]) -> None:
    Telemetry("ingest").emit({"Messages": 0})
    assert published(capsys) == []


@pytest.mark.timeout(20)
def test_of_exceptions_that_cause_each_other_each_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = ValueError("secret"), KeyError("secret")
    first.__cause__, second.__cause__ = second, first
    # A service of its own: loggers keep the output that they first had.
    Telemetry("in a circle").logger.critical("no", exc_info=first)
    (line,) = published(capsys)
    assert line["exception"] == "ValueError\nKeyError\n"


def test_batches_do_not_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """F7: each batch publishes its own."""
    telemetry = Telemetry("summarize")
    for _ in range(2):
        telemetry.emit({"Records": 1})
    assert [blob["Records"] for blob in published(capsys)] == [[1], [1]]
