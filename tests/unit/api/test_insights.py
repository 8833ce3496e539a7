"""Many runs by pipeline and phase, and two runs compared."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from functions.core.keys import RunRef
from functions.core.times import text_of
from tests import build
from tests.api import HttpClient
from tests.build import SECOND, T0
from tests.memory_stage import MemoryStage


def record(stage: MemoryStage, run_id: str, *events: Any) -> None:
    assert stage.ingest(build.body(*events, run=RunRef("acme", run_id))) == []
    stage.drain()
    stage.dynamodb.settle()


def step(n: int, seconds: int, **fields: Any) -> Any:
    at = T0 + n * SECOND
    return build.step(n, started_at=at, ended_at=at + seconds * SECOND, **fields)


def three_runs(stage: MemoryStage) -> None:
    """Two complete runs and one that still runs, a second apart."""
    record(
        stage,
        "one",
        build.started(at=T0),
        step(0, 1, phase="plan", cost_usd="0.1", input_tokens=10),
        step(1, 2, phase="act", cost_usd="0.2", status="failed"),
        build.ended(at=T0 + 5 * SECOND),
    )
    record(
        stage,
        "two",
        build.started(at=T0 + SECOND),
        step(2, 3, phase="plan", cost_usd="0.3"),
        step(3, 4, phase="plan"),
        build.ended(at=T0 + 6 * SECOND, status="failed"),
    )
    record(
        stage,
        "three",
        build.started(at=T0 + 2 * SECOND, pipeline="other"),
        step(4, 1, phase="plan", cost_usd="1"),
    )


def test_runs_add_up_by_pipeline_and_phase(stage: MemoryStage, client: HttpClient) -> None:
    three_runs(stage)
    shown = client.get("/insights", view="summary").json
    assert (shown["view"], shown["runs"], shown["complete"]) == ("summary", 3, True)
    assert shown["partial_runs"] == 1
    other, research = shown["pipelines"]
    assert (other["pipeline"], other["partial_runs"], other["by_status"]) == (
        "other",
        1,
        {"running": 1},
    )
    assert other["cost_usd"] == "1"
    assert "p50_ms" not in other["phases"][0]
    assert research["by_status"] == {"failed": 1, "succeeded": 1}
    assert (research["runs"], research["calls"], research["failed"]) == (2, 4, 1)
    assert (research["cost_usd"], research["cost_unknown"]) == ("0.6", 1)
    plan, act = research["phases"]
    assert (plan["phase"], plan["runs"], plan["calls"], plan["cost_usd"]) == (
        "plan",
        2,
        3,
        "0.4",
    )
    assert plan["input_tokens"] == 10
    # Two calls of run two weigh more than the one of run one.
    assert (plan["p50_ms"], plan["p95_ms"], plan["max_ms"]) == (3000, 4000, 4000)
    assert (act["calls"], act["failed"], act["max_ms"]) == (1, 1, 2000)


def test_a_range_and_a_pipeline_narrow_it(stage: MemoryStage, client: HttpClient) -> None:
    three_runs(stage)
    only = client.get("/insights", view="summary", pipeline="research").json
    assert [group["pipeline"] for group in only["pipelines"]] == ["research"]
    later = client.get("/insights", view="summary", **{"from": text_of(T0 + SECOND)}).json
    assert later["runs"] == 2
    none = client.get("/insights", view="summary", to=text_of(T0)).json
    assert (none["runs"], none["pipelines"], none["complete"]) == (0, [], True)


def test_a_run_whose_summary_is_behind_is_partial_with_exact_sums(
    stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, "one", build.started(), step(0, 1, phase="plan", cost_usd="0.1"), build.ended())
    late = build.body(step(1, 1, phase="plan", cost_usd="0.2"), run=RunRef("acme", "one"))
    stage.ingest(late)
    stage.summarize(stage.new_stream_records())
    stage.dynamodb.settle()
    (group,) = client.get("/insights", view="summary").json["pipelines"]
    assert (group["partial_runs"], group["calls"], group["cost_usd"]) == (1, 2, "0.3")
    assert (group["phases"][0]["calls"], group["phases"][0]["cost_usd"]) == (1, "0.1")


def test_when_time_is_up_it_says_how_far_it_came(stage: MemoryStage, client: HttpClient) -> None:
    stage.dynamodb.page_bytes = 300
    for n in range(20):
        at = T0 + n * SECOND
        record(stage, f"r{n:02d}", build.started(at=at), build.ended(at=at + SECOND))
    ticks = iter(range(10**9))
    slow = HttpClient(stage, client.key, clock=lambda: 7.0 * next(ticks))
    shown = slow.get("/insights", view="summary").json
    assert shown["complete"] is False
    assert 0 < shown["runs"] < 20
    assert_covers(client, shown)


def assert_covers(client: HttpClient, shown: Any) -> None:
    """All runs that started at `covers_from` or later are in it, and nothing else was counted."""
    again = client.get("/insights", view="summary", **{"from": shown["covers_from"]}).json
    assert again["complete"] is True
    assert shown["runs"] - again["runs"] in {0, 1}


@pytest.mark.parametrize("pipeline", ["research", "rare", "never"])
def test_an_answer_that_is_not_complete_never_says_it_is(
    stage: MemoryStage, client: HttpClient, pipeline: str
) -> None:
    """Also when time is up at the end of a request that found nothing, or a full number of runs."""
    for n in range(300):
        at = T0 + n * SECOND
        name = "rare" if n < 2 else "research"
        run = RunRef("acme", f"r{n:03d}")
        stage.ingest(build.body(build.started(at=at, pipeline=name), run=run))
    stage.dynamodb.settle()
    late = HttpClient(stage, client.key, clock=itertools.count(0, 13).__next__)
    shown = late.get("/insights", view="summary", pipeline=pipeline).json
    assert shown["complete"] is False
    assert shown["runs"] == (250 if pipeline == "research" else 0) or shown["runs"] == 25
    assert "covers_from" in shown


def test_a_run_counts_once_in_what_is_rolled_up(stage: MemoryStage, client: HttpClient) -> None:
    record(
        stage,
        "one",
        build.started(),
        *(step(n, 1, phase=f"p{n}") for n in range(120)),
        build.ended(),
    )
    (group,) = client.get("/insights", view="summary").json["pipelines"]
    assert group["phases"][-1]["phase"] == "(other phases)"
    assert (group["phases"][-1]["runs"], group["phases"][-1]["calls"]) == (1, 70)


def test_a_pipeline_as_a_whole_has_the_percentiles_of_its_median_run(
    stage: MemoryStage, client: HttpClient
) -> None:
    """A run that still runs has none."""
    three_runs(stage)
    other, research = client.get("/insights", view="summary").json["pipelines"]
    assert "p95_ms" not in other
    assert (research["p50_ms"], research["p95_ms"], research["max_ms"]) == (1000, 2000, 4000)


def test_hours_and_days_add_up_by_the_start_of_runs(stage: MemoryStage, client: HttpClient) -> None:
    hour = 3_600 * SECOND
    for number, hours in enumerate([0, 0, 1, 30]):
        at = T0 // hour * hour - hours * hour + number
        call = step(number, 2, phase="plan", cost_usd="0.1")
        record(stage, f"run-{number}", build.started(at=at), call, build.ended(at=at + hour))
    wanted = {"view": "summary", "from": text_of(T0 - 60 * hour)}
    (group,) = client.get("/insights", **wanted, by="hour").json["pipelines"]
    first = T0 // hour * hour
    assert [
        (t["from"], t["runs"], t["calls"], t["cost_usd"], t["p95_ms"]) for t in group["times"]
    ] == [
        (text_of(first - 30 * hour), 1, 1, "0.1", 2000),
        (text_of(first - hour), 1, 1, "0.1", 2000),
        (text_of(first), 2, 2, "0.2", 2000),
    ]
    assert "times" not in group["phases"][0]
    assert sum(t["runs"] for t in group["times"]) == group["runs"]
    (group,) = client.get("/insights", **wanted, by="day", pipeline="research").json["pipelines"]
    assert sum(t["runs"] for t in group["times"]) == 4
    assert all(t["from"].endswith("T00:00:00.000000000Z") for t in group["times"])
    (plan,) = group["phases"]
    assert [t["calls"] for t in plan["times"]] == [t["calls"] for t in group["times"]]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"by": "hour"}, "by"),
        ({"by": "hour", "from": text_of(T0 - 401 * 3_600 * SECOND)}, "by"),
        ({"by": "week", "from": text_of(T0)}, "by"),
        ({"view": "compare", "a": "x", "b": "y", "by": "day"}, "by"),
    ],
)
def test_too_many_intervals_are_refused(
    client: HttpClient, wanted: dict[str, str], field: str
) -> None:
    answer = client.get("/insights", **{"view": "summary", **wanted})
    assert (answer.status, answer.json["field"]) == (400, field)


def test_a_long_name_of_a_pipeline_is_found_by_itself(
    stage: MemoryStage, client: HttpClient
) -> None:
    name = "研究" * 50
    record(stage, "one", build.started(pipeline=name), step(0, 1), build.ended())
    assert client.get("/insights", view="summary", pipeline=name).json["runs"] == 1
    assert len(client.get("/pipeline-runs", pipeline=name[:128]).json["runs"]) == 1


def test_the_longest_names_leave_an_answer_far_below_its_limit(
    stage: MemoryStage, key_of: Callable[[str], str]
) -> None:
    for n in range(51):
        wide = [step(k, 1, phase=f"{k:03d}" + "\x01" * 125) for k in range(60)]
        events = [build.started(at=T0 + n, pipeline=f"{n:03d}" + "\x02" * 125), *wide]
        record(stage, f"r{n}", *events, build.ended())
    plain = HttpClient(stage, key_of("acme"), gzipped=False)
    assert plain.get("/insights", view="summary").encoded_bytes < 5_500_000


def test_many_pipelines_and_phases_are_rolled_up_and_lose_no_call(
    stage: MemoryStage, client: HttpClient
) -> None:
    for n in range(60):
        at = T0 + n * SECOND
        steps = [step(n * 3 + k, 1, phase=f"phase {n}-{k}", cost_usd="0.01") for k in range(3)]
        record(
            stage,
            f"r{n:02d}",
            build.started(at=at, pipeline="many phases" if n % 2 else f"pipeline {n}"),
            *steps,
            build.ended(at=at + SECOND),
        )
    wide = [step(n, 1, phase=f"p{n}") for n in range(200, 350)]
    record(stage, "wide", build.started(pipeline="many phases"), *wide, build.ended())
    shown = client.get("/insights", view="summary").json
    assert len(shown["pipelines"]) <= 51
    assert sum(group["calls"] for group in shown["pipelines"]) == 60 * 3 + 150
    for group in shown["pipelines"]:
        assert sum(phase["calls"] for phase in group["phases"]) == group["calls"]
        assert len(group["phases"]) <= 51


def test_two_runs_are_compared_phase_by_phase(stage: MemoryStage, client: HttpClient) -> None:
    three_runs(stage)
    shown = client.get("/insights", view="compare", a="one", b="two").json
    assert shown["view"] == "compare"
    assert (shown["a"]["run"]["run_id"], shown["b"]["run"]["run_id"]) == ("one", "two")
    assert (shown["a"]["partial"], shown["b"]["partial"]) == (False, False)
    assert shown["change"] == {
        "calls": 0.0,
        "failed": -100.0,
        "cost_usd": 0.0,
        "input_tokens": -100.0,
        "p50_ms": 200.0,
        "p95_ms": 100.0,
    }
    plan, act = shown["phases"]
    assert plan["change"] == {
        "calls": 100.0,
        "cost_usd": 200.0,
        "input_tokens": -100.0,
        "p50_ms": 200.0,
        "p95_ms": 300.0,
    }
    assert act["a"]["calls"] == 1
    assert "b" not in act
    assert "change" not in act


def test_a_cost_that_is_not_known_is_no_change(stage: MemoryStage, client: HttpClient) -> None:
    record(stage, "one", build.started(), step(0, 1, cost_usd="0.1"), build.ended())
    record(stage, "two", build.started(), step(1, 1), build.ended())
    shown = client.get("/insights", view="compare", a="one", b="two").json
    assert "cost_usd" not in shown["change"]
    assert shown["phases"][0]["change"]["calls"] == 0.0


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ({}, 400, "view"),
        ({"view": "all"}, 400, "view"),
        ({"view": "compare"}, 400, "a"),
        ({"view": "compare", "a": "one"}, 400, "b"),
        ({"view": "compare", "a": "one", "b": "a/b"}, 400, "b"),
        ({"view": "compare", "a": "one", "b": "nine"}, 404, None),
        ({"view": "summary", "from": "now"}, 400, "from"),
        ({"view": "summary", "a": "one"}, 400, "a"),
        ({"view": "compare", "a": "one", "b": "two", "from": "now"}, 400, "from"),
        ({"view": "compare", "a": "one", "b": "two", "pipeline": "x"}, 400, "pipeline"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(
    stage: MemoryStage, client: HttpClient, query: dict[str, str], status: int, field: str | None
) -> None:
    three_runs(stage)
    answer = client.get("/insights", **query)
    assert (answer.status, answer.json.get("field")) == (status, field)
