"""What a recount tells the logs of a run, and which drift it takes for lasting."""

import json
from typing import Any

import pytest

from tests import build, happenings
from tests.build import RUN
from tests.memory_stage import MemoryStage
from tests.telling import Told, listening


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    with listening(monkeypatch, capsys, "runtally/test") as both:
        yield both


def lines(told: Told, message: str) -> list[dict[str, Any]]:
    usual = {"level", "location", "message", "timestamp", "service", "xray_trace_id"}
    return [
        {name: value for name, value in line.items() if name not in usual}
        for line in told.lines()
        if line.get("message") == message
    ]


def test_a_line_a_run_with_its_figures(heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    steps = [build.step(1, cost_usd="0.10"), build.step(2, cost_usd="0.2", status="failed")]
    end = build.ended(build.T0 + 90 * build.SECOND, status="failed", error="no")
    stage.ingest(build.body(build.started(), *steps, build.step(3), end))
    stage.drain()
    assert lines(told, "run summarized") == [
        {
            **RUN._asdict(),
            "pipeline": "research",
            "status": "failed",
            "ended_hour": "2026-11-29T23",
            "calls": 3,
            "failed": 1,
            "cost_usd": pytest.approx(0.3),
            "cost_unknown": 1,
            "wall_ms": 90_000,
            "p95_ms": 1_000,
        }
    ]


def test_a_late_step_renews_it_and_what_changes_nothing_does_not(
    heard: tuple[MemoryStage, Told],
) -> None:
    stage, told = heard
    stage.ingest(build.body(build.step(1), build.ended()))
    stage.drain()
    stage.ingest(build.body(build.step(2)))
    records = stage.new_stream_records()
    stage.summarize(records)
    stage.summarize(records)
    stage.drain()
    stage.recount_parts.recount(RUN, None)
    request = json.dumps({**RUN._asdict(), "agents_total": None})
    happenings.deliver_to_recount(stage, request)
    assert [line["calls"] for line in lines(told, "run summarized")] == [1, 2]


def test_an_open_run_is_not_told_until_it_is_stale(heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    stage.ingest(build.body(build.started(), build.step(1)))
    stage.drain()
    assert lines(told, "run summarized") == []
    stage.pass_time(2 * 3_600)
    stage.sweep()
    stage.sweep()
    stage.drain()
    assert {line["status"] for line in lines(told, "run summarized")} <= {"stale"}


def test_failed_phases_by_their_declared_names(heard: tuple[MemoryStage, Told]) -> None:
    """A phase that is called after a step stays nameless: names may hold anything."""
    stage, told = heard
    stage.ingest(
        build.body(
            build.step(1, phase="plan"),
            build.step(2, phase="plan", status="failed"),
            build.step(3, phase="write"),
            build.step(4),
            build.step(5, parent_id=build.step_id(4), name="jane@example.com", status="failed"),
            build.ended(),
        )
    )
    stage.drain()
    found = lines(told, "phase failed")
    assert [(line["phase"], line["calls"], line["failed"]) for line in found] == [
        ("plan", 2, 1),
        ("", 1, 1),
    ]
    assert {line["run_id"] for line in found} == {RUN.run_id}


def test_at_most_ten_phases_the_worst_first(heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    steps = [
        build.step(100 * phase + n, phase=f"phase-{phase}", status="failed")
        for phase in range(1, 13)
        for n in range(phase)
    ]
    stage.ingest(build.body(*steps, build.ended()))
    stage.drain()
    assert [line["failed"] for line in lines(told, "phase failed")] == list(range(12, 2, -1))
