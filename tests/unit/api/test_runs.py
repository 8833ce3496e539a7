"""A tenant's runs, and a run with every call, over HTTP."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from functions.api import cursors
from functions.core.keys import RunRef
from functions.core.times import text_of
from runtally import wire
from tests import build
from tests.api import HttpClient
from tests.build import RUN, SECOND, T0
from tests.invariants import sums_of
from tests.memory_stage import MemoryStage


def record(stage: MemoryStage, *events: Any, run: RunRef = RUN, buckets: int = 1) -> None:
    assert stage.ingest(build.body(*events, run=run, buckets=buckets)) == []
    stage.drain()


def every_page(client: HttpClient, path: str, **query: str) -> list[Any]:
    pages = []
    while True:
        answer = client.get(path, **query)
        assert answer.status == 200, answer.body
        pages.append(answer.json)
        if "next" not in pages[-1]:
            return pages
        query["cursor"] = pages[-1]["next"]


def test_a_run_shows_all_that_was_recorded(stage: MemoryStage, client: HttpClient) -> None:
    plan = build.step(1, name="plan", phase="plan", kind="agent", cost_usd="0.004125000")
    ask = build.step(
        2,
        parent_id=plan.step_id,
        model="m-large",
        provider="local",
        input_tokens=1200,
        output_tokens=85,
        cost_usd="0.000009",
        error="too slow",
        status="failed",
        attributes={"temperature": 0.5, "tags": ["a", "你"]},
        payload={"n": 9007199254740993},
    )
    record(
        stage,
        build.started(session_id="s-1", attributes={"customer": "c-17"}),
        plan,
        ask,
        build.log(3, "one", "two"),
        build.ended(result="完成"),
    )
    answer = client.get("/pipeline-runs/run-1")
    assert answer.status == 200
    shown = answer.json
    assert shown["run"] == {
        "run_id": "run-1",
        "pipeline": "research",
        "status": "succeeded",
        "started_at": text_of(T0),
        "ended_at": text_of(T0 + 3_000 * SECOND),
        "session_id": "s-1",
        "attributes": {"customer": "c-17"},
    }
    assert shown["totals"]["source"] == "summary"
    assert shown["totals"]["agents_total"] == 2
    assert shown["totals"]["cost_usd_total"] == "0.004134"
    assert [(phase["phase"], phase["calls"]) for phase in shown["phases"]["entries"]] == [
        ("plan", 2)
    ]
    assert shown["phases"]["partial"] is False
    assert shown["result"] == {"result": "完成", "result_bytes": 6}
    assert shown["logs"] == {
        "older": False,
        "entries": [
            {"log_id": build.step_id(3), "at": text_of(T0 + 3 * SECOND), "lines": ["one", "two"]}
        ],
    }
    assert shown["calls"][1] == {
        "step_id": ask.step_id,
        "parent_id": plan.step_id,
        "kind": "model",
        "status": "failed",
        "started_at": text_of(ask.started_at),
        "ended_at": text_of(ask.ended_at),
        "duration_ms": 1000.0,
        "model": "m-large",
        "provider": "local",
        "input_tokens": 1200,
        "output_tokens": 85,
        "cost_usd": "0.000009",
        "error": "too slow",
        "attributes": {"temperature": 0.5, "tags": ["a", "你"]},
        "payload_bytes": len('{"n":9007199254740993}'),
    }
    assert "next" not in shown


@pytest.mark.parametrize("buckets", [1, 7, 64])
def test_every_call_comes_once_in_step_order_over_all_pages(
    key_of: Callable[[str], str], buckets: int, stage: MemoryStage
) -> None:
    stage.dynamodb.page_bytes = 20_000
    steps = [
        build.step(n, name="你" * 42, error="é" * 128, attributes={"a": "x" * 1_900})
        for n in range(3_000)
    ]
    for start in range(0, 3_000, 100):
        stage.ingest(build.body(*steps[start : start + 100], buckets=buckets))
    stage.drain()
    plain = HttpClient(stage, key_of("acme"), gzipped=False)
    pages = every_page(plain, "/pipeline-runs/run-1")
    assert len(pages) > 1
    calls = [call["step_id"] for page in pages for call in page["calls"]]
    assert calls == sorted(step.step_id for step in steps)
    assert all("totals" not in page for page in pages[1:])
    compressed = every_page(HttpClient(stage, plain.key), "/pipeline-runs/run-1")
    assert len(compressed) < len(pages)
    assert [c["step_id"] for page in compressed for c in page["calls"]] == calls


def test_the_first_page_of_a_run_takes_a_bounded_number_of_requests(
    stage: MemoryStage, client: HttpClient
) -> None:
    for start in range(0, 2_000, 100):
        stage.ingest(build.body(*(build.step(n) for n in range(start, start + 100)), buckets=8))
    stage.drain()
    stage.calls.made.clear()
    assert len(client.get("/pipeline-runs/run-1").json["calls"]) == 2_000
    assert stage.calls.made.count("dynamodb.get_item") == 1  # the key
    assert stage.calls.made.count("dynamodb.batch_get_item") == 1  # run, totals, summary, result
    assert stage.calls.made.count("dynamodb.query") <= 1 + 2 * 8  # logs, and the buckets


def test_a_page_ends_when_time_is_up_and_the_next_goes_on(
    stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, *(build.step(n) for n in range(100)))
    ticks = iter(range(10**9))
    # A second passes whenever anybody looks.
    slow = HttpClient(stage, client.key, clock=lambda: float(next(ticks)))
    pages = every_page(slow, "/pipeline-runs/run-1")
    assert len(pages) > 2
    assert [c["step_id"] for page in pages for c in page["calls"]] == [
        build.step_id(n) for n in range(100)
    ]


def test_a_running_run_shows_live_totals_and_phases_of_the_preview(
    stage: MemoryStage, client: HttpClient
) -> None:
    steps = [build.step(n, phase="plan" if n < 60 else "act", cost_usd="0.1") for n in range(150)]
    for start in (0, 50, 100):  # a preview takes what of a batch fits
        record(stage, *steps[start : start + 50])
    stage.dynamodb.settle()
    shown = client.get("/pipeline-runs").json["runs"][0]
    assert shown["status"] == "running"
    assert shown["start_implicit"] is True
    assert shown["totals"]["source"] == "live"
    assert shown["totals"]["cost_usd_total"] == "15"
    assert shown["preview"]["label"] == "first 100 of 150"
    assert len(shown["preview"]["calls"]) == 100
    assert shown["phases"] == {
        "source": "preview",
        "partial": True,
        "calls": 100,
        "entries": [
            {"phase": "plan", "calls": 60, "failed": 0, "cost_usd": "6", "cost_unknown": 0},
            {"phase": "act", "calls": 40, "failed": 0, "cost_usd": "4", "cost_unknown": 0},
        ],
    }


def test_readers_see_whichever_of_totals_and_summary_covers_more(
    stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, build.started(), *(build.step(n) for n in range(3)), build.ended())
    assert stage.ingest(build.body(build.step(9))) == []
    stage.summarize(stage.new_stream_records())  # counted; the recount is still in its queue
    shown = client.get("/pipeline-runs/run-1").json
    assert (shown["totals"]["source"], shown["totals"]["agents_total"]) == ("live", 4)
    assert (shown["phases"]["partial"], shown["phases"]["calls"]) == (True, 3)
    stage.drain()
    shown = client.get("/pipeline-runs/run-1").json
    assert (shown["totals"]["source"], shown["totals"]["agents_total"]) == ("summary", 4)
    assert shown["phases"]["partial"] is False


def fill_list(stage: MemoryStage, number: int, tenant_id: str = "acme") -> list[str]:
    """Runs that started a second apart; every third failed, odd ones are of another pipeline."""
    ids = [f"r{n:03d}" for n in range(number)]
    for n, run_id in enumerate(ids):
        at = T0 + n * SECOND
        events: list[wire.Event] = [
            build.started(at=at, pipeline="odd" if n % 2 else "even"),
            build.step(n, cost_usd="0.5"),
            build.ended(at=at + SECOND, status="succeeded" if n % 3 else "failed"),
        ]
        assert stage.ingest(build.body(*events, run=RunRef(tenant_id, run_id))) == []
    stage.drain()
    stage.dynamodb.settle()
    return ids


@pytest.mark.parametrize("limit", ["1", "7", "100"])
def test_runs_are_listed_newest_first_each_once(
    stage: MemoryStage, client: HttpClient, limit: str
) -> None:
    ids = fill_list(stage, 30)
    fill_list(stage, 3, tenant_id="globex")
    pages = every_page(client, "/pipeline-runs", limit=limit)
    assert all(len(page["runs"]) <= int(limit) for page in pages)
    assert all(page["runs"] for page in pages)
    listed = [run for page in pages for run in page["runs"]]
    assert [run["run_id"] for run in listed] == ids[::-1]
    assert {run["totals"]["cost_usd_total"] for run in listed} == {"0.5"}
    assert {run["preview"]["label"] for run in listed} == {"all 1"}


def test_a_filter_follows_pages_until_there_are_as_many_as_asked_for(
    stage: MemoryStage, client: HttpClient
) -> None:
    stage.dynamodb.page_bytes = 600  # a few runs of the index a request
    ids = fill_list(stage, 60)
    wanted = [run_id for n, run_id in enumerate(ids) if n % 2 and n % 3 == 0][::-1]
    pages = every_page(client, "/pipeline-runs", status="failed", pipeline="odd", limit="4")
    assert [len(page["runs"]) for page in pages[:-1]] == [4] * (len(pages) - 1)
    assert [run["run_id"] for page in pages for run in page["runs"]] == wanted


def test_a_filter_that_finds_nothing_ends_when_time_is_up_with_a_cursor(
    stage: MemoryStage, client: HttpClient
) -> None:
    stage.dynamodb.page_bytes = 600
    fill_list(stage, 60)
    ticks = iter(range(10**9))
    slow = HttpClient(stage, client.key, clock=lambda: 6.0 * next(ticks))
    first = slow.get("/pipeline-runs", status="cancelled").json
    assert first["runs"] == []
    assert "next" in first
    assert all(
        page["runs"] == [] for page in every_page(slow, "/pipeline-runs", status="cancelled")
    )


def test_a_time_range_takes_its_start_and_leaves_out_its_end(
    stage: MemoryStage, client: HttpClient
) -> None:
    ids = fill_list(stage, 9)
    query = {"from": text_of(T0 + 2 * SECOND), "to": text_of(T0 + 5 * SECOND)}
    shown = client.get("/pipeline-runs", **query).json
    assert [run["run_id"] for run in shown["runs"]] == ids[2:5][::-1]


def test_a_run_just_written_is_readable_at_once_and_listed_as_far_as_the_index_knows(
    stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, build.started(), build.step(1))
    assert client.get("/pipeline-runs/run-1").json["totals"]["agents_total"] == 1
    lagging = client.get("/pipeline-runs").json["runs"]
    assert [run["run_id"] for run in lagging] in ([], ["run-1"])
    cursor_before = client.get("/pipeline-runs", limit="1").json.get("next")
    stage.dynamodb.settle()
    assert [r["run_id"] for r in client.get("/pipeline-runs").json["runs"]] == ["run-1"]
    if cursor_before:
        assert client.get("/pipeline-runs", limit="1", cursor=cursor_before).status == 200


def test_an_expired_run_is_gone_though_it_is_still_in_the_table(
    stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, build.started(), build.step(1), build.ended())
    stage.dynamodb.settle()
    assert len(client.get("/pipeline-runs").json["runs"]) == 1
    stage.now_ns += 366 * 86_400 * SECOND
    assert client.get("/pipeline-runs").json == {"runs": []}
    assert client.get("/pipeline-runs/run-1").status == 404
    assert client.get(f"/pipeline-runs/run-1/calls/{build.step_id(1)}/payload").status == 404


def test_a_number_written_with_forty_digits_by_another_sdk_does_not_block_the_run(
    stage: MemoryStage, client: HttpClient
) -> None:
    """F25: the trailing zeros count as digits to boto3's own reader."""
    record(stage, build.started(), build.step(1), build.step(2))
    ((key, item),) = [
        (key, item)
        for key, item in stage.dynamodb.items.items()
        if key[1] == f"AGENT#{build.step_id(1)}"
    ]
    written = "1234567895171680000000000000000000000000"
    stage.dynamodb.items[key] = {**item, "cost_usd": {"N": written}}
    calls = client.get("/pipeline-runs/run-1").json["calls"]
    assert len(calls) == 2
    assert Decimal(calls[0]["cost_usd"]) == Decimal(written)


def test_the_newest_log_lines_are_shown_and_said_to_be_the_newest(
    stage: MemoryStage, client: HttpClient
) -> None:
    for n in range(300):
        stage.ingest(build.body(build.log(n, f"line {n}")))
    logs = client.get("/pipeline-runs/run-1").json["logs"]
    assert logs["older"] is True
    assert [entry["lines"] for entry in logs["entries"]] == [[f"line {n}"] for n in range(100, 300)]
    for n in range(300, 320):
        stage.ingest(build.body(build.log(n, "你" * 5_000)))
    logs = client.get("/pipeline-runs/run-1").json["logs"]
    size = sum(len(line.encode()) for entry in logs["entries"] for line in entry["lines"])
    assert 80_000 < size <= 96_000
    assert logs["entries"][-1]["log_id"] == build.step_id(319)


def test_totals_equal_sums_over_what_was_sent(stage: MemoryStage, client: HttpClient) -> None:
    steps = [
        build.step(n, cost_usd=f"0.{n:018d}" if n % 3 else None, input_tokens=n, output_tokens=1)
        for n in range(1, 120)
    ]
    record(stage, build.started(), *steps, build.ended())
    totals = client.get("/pipeline-runs/run-1").json["totals"]
    expected = sums_of(steps)
    assert totals.pop("source") == "summary"
    assert Decimal(totals.pop("cost_usd_total")) == Decimal(
        expected["cost_usd_total"].numerator
    ) / Decimal(expected["cost_usd_total"].denominator)
    assert {name: expected[name] for name in totals if name in expected} == {
        name: value for name, value in totals.items() if name in expected
    }


def test_of_one_long_log_the_newest_lines_are_shown(stage: MemoryStage, client: HttpClient) -> None:
    stage.ingest(build.body(build.log(1, *(f"line {n}" for n in range(500)))))
    logs = client.get("/pipeline-runs/run-1").json["logs"]
    assert logs["older"] is True
    assert logs["entries"][0]["lines"] == [f"line {n}" for n in range(300, 500)]


def test_a_forged_cursor_gets_no_further_than_a_place_in_ones_own_list(
    stage: MemoryStage, client: HttpClient
) -> None:
    fill_list(stage, 3)
    scope = "runs acme 0 10000000000000000000 {}"
    for position in ((), ("a", "b"), (None, None), (10**30, "x"), (1, "a/b"), (5,)):
        cursor = cursors.encode(scope, *position)
        assert client.get("/pipeline-runs", cursor=cursor).status == 400
    assert client.get("/pipeline-runs", cursor=cursors.encode(scope, 5, "x")).json == {"runs": []}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"status": "done"}, "status"),
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-11-30"}, "to"),
        ({"from": text_of(T0), "to": text_of(T0)}, "to"),
        ({"cursor": "abc"}, "cursor"),
        ({"pipeline": ""}, "pipeline"),
        ({"sort": "up"}, "sort"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(
    client: HttpClient, query: dict[str, str], field: str
) -> None:
    answer = client.get("/pipeline-runs", **query)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["field"] == field
    assert answer.json["status"] == 400


def test_a_cursor_is_good_for_its_own_list_alone(
    stage: MemoryStage, client: HttpClient, key_of: Callable[[str], str]
) -> None:
    fill_list(stage, 5)
    cursor = client.get("/pipeline-runs", limit="2").json["next"]
    assert client.get("/pipeline-runs", limit="1", cursor=cursor).status == 200
    assert client.get("/pipeline-runs", status="failed", cursor=cursor).status == 400
    assert client.get("/pipeline-runs/r001", cursor=cursor).status == 400
    other = HttpClient(stage, key_of("globex"))
    assert other.get("/pipeline-runs", limit="2", cursor=cursor).status == 400
