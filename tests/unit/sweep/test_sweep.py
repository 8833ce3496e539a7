"""Which open runs are stale, what follows from it, and what a crash in between leaves."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from functions.adapters.attributes import from_attributes
from functions.core import counts, items, keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.turns import TURN_NS
from functions.sweep.sweep import Swept
from tests import build
from tests.build import RUN, SECOND, T0
from tests.fakes.calls import client_error
from tests.memory_stage import RECOUNTS, SWEPT_EVERY_S, MemoryStage

STEP_1_ENDED = T0 + 2 * SECOND
HOUR = 3_600 * SECOND


class Killed(BaseException):
    """The sandbox is gone: no handler may catch this."""


def silent(*events: Any, since: int = STEP_1_ENDED + HOUR, buckets: int = 1) -> MemoryStage:
    """A stage with one open run, counted, at the very moment that it becomes stale."""
    stage = MemoryStage()
    stage.ingest(build.body(*(events or (build.started(), build.step(1))), buckets=buckets))
    stage.drain()
    stage.now_ns = since
    return stage


def run_of(stage: MemoryStage, ref: RunRef = RUN) -> dict[str, Any]:
    run = stage.item(ref, keys.RUN)
    assert run is not None
    return run


def is_stale(stage: MemoryStage, ref: RunRef = RUN) -> bool:
    run = run_of(stage, ref)
    assert (run["status"] == "stale") == (items.STALE in run) == (items.STALE_COUNTED in run)
    return items.STALE in run


def test_a_run_is_stale_an_hour_after_its_newest_event_and_not_a_moment_before() -> None:
    stage = silent(since=STEP_1_ENDED + HOUR - 1)
    assert stage.sweep()["RunsStale"] == 0
    assert not is_stale(stage)
    stage.now_ns += 1
    assert stage.sweep()["RunsStale"] == 1
    run = run_of(stage)
    assert (run[items.STALE], run[items.STALE_COUNTED]) == (STEP_1_ENDED + HOUR, 1)
    assert run[keys.OPEN_RUNS_SORT] == keys.open_runs(RUN).sort
    assert run[keys.BY_TENANT_SORT]


@pytest.mark.parametrize(
    ("events", "newest"),
    [
        ((), T0),
        ((build.step(3), build.step(1)), T0 + 4 * SECOND),
        ((build.step(1), build.log(90, "x")), T0 + 90 * SECOND),
        ((build.step(1), build.step(2, ended_at=T0 + 77 * SECOND)), T0 + 77 * SECOND),
        ((build.log(5, "x"),), T0 + 5 * SECOND),
    ],
)
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("deadline_s", [None, 1, 100_000])
def test_the_newest_event_counts_in_whichever_bucket_it_is(
    events: tuple[Any, ...], newest: int, buckets: int, deadline_s: int | None
) -> None:
    due = newest + (deadline_s or 3_600) * SECOND
    started = build.started(stale_after_s=deadline_s)
    stage = silent(started, *events, since=due - 1, buckets=buckets)
    stage.sweep()
    assert not is_stale(stage)
    stage.now_ns = due
    stage.sweep()
    assert is_stale(stage)
    assert run_of(stage)[items.STALE] == due


def test_a_stale_run_gets_a_partial_summary_and_is_told_once() -> None:
    stage = silent(build.started(), build.step(1, phase="plan", cost_usd="0.5"))
    stage.sweep()
    assert stage.recount() == []
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    assert summary["agents_total"] == 1
    assert counts.ENDED not in (stage.item(RUN, keys.TOTALS) or {})
    (event,) = stage.events.details("run.stale")
    assert (event["run_id"], event["status"], event["totals"]["cost_usd_total"]) == (
        "run-1",
        "stale",
        "0.5",
    )
    before = dict(stage.dynamodb.items)
    for _ in range(3):
        assert stage.sweep()["OpenRuns"] == 1
        assert stage.recount() == []
    assert stage.dynamodb.items == before
    assert len(stage.events.taken) == 1


def test_a_run_that_goes_on_is_running_again_and_may_be_stale_again() -> None:
    stage = silent()
    stage.sweep()
    stage.drain()
    stage.ingest(build.body(build.step(3_000)))
    assert not is_stale(stage)  # at once, and not with the next sweep's look
    stage.drain()
    assert stage.sweep()["RunsStale"] == 0
    stage.now_ns = T0 + 3_001 * SECOND + HOUR
    assert stage.sweep()["RunsStale"] == 1
    stage.drain()
    assert (stage.item(RUN, keys.SUMMARY) or {})["agents_total"] == 2
    told = [event["dedupe_id"] for event in stage.events.details("run.stale")]
    assert len(set(told)) == len(told) == 2


def test_steps_that_come_late_to_a_run_that_stays_stale_are_summarised_and_not_told() -> None:
    stage = silent(since=STEP_1_ENDED + 3 * HOUR)
    stage.sweep()
    stage.drain()
    stage.ingest(build.body(build.step(5), build.step(0)))
    stage.drain()
    assert (stage.item(RUN, keys.SUMMARY) or {})["agents_total"] == 1
    assert run_of(stage)[items.STALE] == T0 + 6 * SECOND + HOUR
    stage.now_ns = T0 + 6 * SECOND + HOUR + TURN_NS * 2
    assert stage.sweep()["RecountsRequested"] == 1
    assert stage.recount() == []
    assert (stage.item(RUN, keys.SUMMARY) or {})["agents_total"] == 3
    assert run_of(stage)[items.STALE] == T0 + 6 * SECOND + HOUR
    assert len(stage.events.taken) == 1
    assert stage.sweep()["RecountsRequested"] == 0


def test_a_run_that_goes_on_while_it_is_marked_is_running_again_after_its_next_turn() -> None:
    stage = silent()

    def goes_on(call: str, when: str) -> None:
        if (call, when) == ("events.put_events", "after"):
            stage.calls.hook = lambda call, when: None
            stage.ingest(build.body(build.step(3_000)))

    stage.calls.hook = goes_on
    stage.sweep()
    assert is_stale(stage)
    assert stage.sweep()["RunsResumed"] == 1
    assert not is_stale(stage)


def test_a_real_start_may_give_a_stale_run_more_time() -> None:
    stage = silent(build.step(1))
    stage.sweep()
    assert is_stale(stage)
    stage.ingest(build.body(build.started(stale_after_s=86_400)))
    assert not is_stale(stage)
    assert stage.sweep()["RunsStale"] == 0


def test_what_is_older_than_the_mark_changes_nothing_of_it() -> None:
    stage = silent(build.started(), build.step(9), since=T0 + 10 * SECOND + HOUR)
    stage.sweep()
    before = run_of(stage)
    stage.ingest(build.body(build.step(3), build.log(4, "x")))
    assert run_of(stage) == before


def test_a_real_end_takes_the_mark_away_whatever_the_sweep_saw_before() -> None:
    stage = silent()
    stage.sweep()
    stage.ingest(build.body(build.ended()))
    stage.drain()
    assert run_of(stage)["status"] == "succeeded"
    assert not any(name in run_of(stage) for name in items.STALE_MARK)
    assert stage.sweep()["OpenRuns"] == 0
    assert [entry["DetailType"] for entry in stage.events.taken] == ["run.stale", "run.ended"]


def test_an_end_between_the_look_and_the_mark_stands() -> None:
    stage = silent()

    def ends(call: str, when: str) -> None:
        if call == "events.put_events":
            stage.calls.hook = lambda call, when: None
            stage.ingest(build.body(build.ended()))

    stage.calls.hook = ends
    assert stage.sweep()["RunsStale"] == 0
    run = run_of(stage)
    assert run["status"] == "succeeded"
    assert not any(name in run for name in items.STALE_MARK)


def test_a_deleted_and_an_expired_run_are_left_alone() -> None:
    for attribute, value in ((items.DELETED, "1"), (keys.EXPIRES, "1")):
        stage = silent()
        stage.dynamodb.items[keys.run_partition(RUN), keys.RUN][attribute] = {"N": value}
        before = dict(stage.dynamodb.items)
        assert stage.sweep()["OpenRuns"] == 0
        assert stage.dynamodb.items == before
        assert RECOUNTS not in stage.sqs.queues or not stage.sqs.queues[RECOUNTS]


def calls_of_a_sweep() -> list[str]:
    stage = silent()
    stage.calls.made.clear()
    stage.sweep()
    return stage.calls.made


CLEAN = calls_of_a_sweep()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["kill", "error"])
@pytest.mark.parametrize("index", range(len(CLEAN)), ids=lambda n: f"{n}-{CLEAN[n]}")
def test_what_a_fault_leaves_the_next_sweep_completes(index: int, how: str, when: str) -> None:
    stage = silent()
    seen = 0

    def fault(call: str, phase: str) -> None:
        nonlocal seen
        seen += phase == when
        if phase == when and seen == index + 1:
            if how == "kill":
                raise Killed(call)
            raise client_error(call, "InternalServerError")

    stage.calls.hook = fault
    try:
        stage.sweep()
    except (Unavailable, Killed) as end:
        ended_by: type[BaseException] | None = type(end)
    else:
        ended_by = None  # what one run meets does not end a sweep
    assert ended_by in ({Killed} if how == "kill" else {Unavailable, None})
    stage.calls.hook = lambda call, when: None
    stage.sweep()
    stage.drain()
    plain = silent()
    plain.sweep()
    plain.drain()
    assert seen > index
    assert stage.dynamodb.items == plain.dynamodb.items
    assert {e["dedupe_id"] for e in stage.events.details("run.stale")} == {
        e["dedupe_id"] for e in plain.events.details("run.stale")
    }


def test_what_one_run_meets_costs_the_others_nothing() -> None:
    stage = MemoryStage()
    refs = [RunRef("acme", f"run-{n}") for n in range(20)]
    for ref in refs:
        stage.ingest(build.body(build.step(1), run=ref))
    stage.drain()
    stage.now_ns = STEP_1_ENDED + HOUR
    stage.events.refuses = lambda detail: detail["run_id"] == "run-7"

    def throttled(call: str, when: str) -> None:
        if call == "dynamodb.query" and when == "before" and stage.calls.made.count(call) == 20:
            raise client_error(call, "ThrottlingException")

    stage.calls.made.clear()
    stage.calls.hook = throttled
    done = stage.sweep()
    assert (done["RunsFailed"], done["EventsRefused"], done["RunsStale"]) == (1, 1, 19)
    stage.events.refuses = lambda detail: False
    assert stage.sweep()["RunsStale"] == 1
    assert all(is_stale(stage, ref) for ref in refs)
    assert len(stage.events.taken) == 20


def test_who_nobody_can_be_told_of_is_marked_recounted_once_and_told_later() -> None:
    stage = silent(since=STEP_1_ENDED + 3 * HOUR)
    stage.events.refuses = lambda detail: True
    done = stage.sweep()
    assert (done["RunsStale"], done["RecountsRequested"], done["EventsRefused"]) == (1, 1, 1)
    assert run_of(stage)[items.STALE_UNTOLD] is True
    stage.now_ns += SWEPT_EVERY_S * SECOND
    done = stage.sweep()
    assert (done["RunsStale"], done["RecountsRequested"], done["EventsRefused"]) == (0, 0, 1)
    stage.events.refuses = lambda detail: False
    for _ in range(2):
        stage.now_ns += SWEPT_EVERY_S * SECOND
        stage.sweep()
    assert is_stale(stage)
    assert items.STALE_UNTOLD not in run_of(stage)
    assert len(stage.events.taken) == 1


def test_a_run_that_is_stale_already_is_looked_into_once_an_hour() -> None:
    stage = silent()
    looked_by = []
    of_lists = 2 * keys.OPEN_RUN_SHARDS + 1
    for sweep in range(30):
        stage.calls.made.clear()
        stage.sweep()
        looked_by += [sweep] * (stage.calls.made.count("dynamodb.query") > of_lists)
        stage.now_ns += SWEPT_EVERY_S * SECOND
    assert looked_by == [0, 13, 25]
    assert is_stale(stage)


def test_where_a_tour_takes_several_sweeps_each_run_has_its_turn_all_the_same() -> None:
    stage = MemoryStage()
    refs = [RunRef("acme", f"run-{n}") for n in range(16)]
    for n, ref in enumerate(refs):
        stage.ingest(build.body(build.started(at=T0 + n * 200 * SECOND), run=ref))
    stage.drain()
    stage.now_ns = T0 + 3_200 * SECOND + HOUR
    assert stage.sweep()["RunsStale"] == len(refs)
    stage.dynamodb.settle()
    looked: dict[RunRef, list[int]] = {ref: [stage.now_ns] for ref in refs}

    class Looks:
        """Notes who is looked into."""

        def __init__(self, runs: Any) -> None:
            self._runs = runs

        def __getattr__(self, name: str) -> Any:
            return getattr(self._runs, name)

        def newest_event_at(self, run: Any) -> int:
            looked[run.ref].append(stage.now_ns)
            newest: int = self._runs.newest_event_at(run)
            return newest

    sweep = replace(stage.sweep_parts.sweep, runs=Looks(stage.sweep_parts.sweep.runs))
    for of_each_tour in (1, 2, 3, 2, 1):
        sweeps = 40 * of_each_tour
        for _ in range(sweeps):
            stage.now_ns += SWEPT_EVERY_S * SECOND
            left = [True] * -(-keys.OPEN_RUN_SHARDS // of_each_tour)
            sweep(lambda left=left: not (left and left.pop()), Swept())  # type: ignore[misc]
    for times in looked.values():
        longest = max(after - before for before, after in pairwise(times))
        assert longest <= TURN_NS + 2 * 3 * SWEPT_EVERY_S * SECOND
        assert len(times) < 2 * (times[-1] - times[0]) / TURN_NS


def test_only_tours_of_several_sweeps_are_noted() -> None:
    stage = silent()
    stage.sweep()
    assert keys.sweep_item() not in stage.dynamodb.items
    stage.sweep_parts.sweep(lambda left=[True]: not (left and left.pop()), Swept())  # type: ignore[misc]
    began = stage.now_ns
    noted = from_attributes(stage.dynamodb.items[keys.sweep_item()])
    assert (noted["shard"], noted["began_at"], noted["last_at"]) == (1, began, 0)
    stage.now_ns += 1
    stage.sweep()
    noted = from_attributes(stage.dynamodb.items[keys.sweep_item()])
    assert (noted["shard"], noted["began_at"], noted["last_at"]) == (0, 0, began)
    stage.sweep()
    noted = from_attributes(stage.dynamodb.items[keys.sweep_item()])
    assert (noted["shard"], noted["began_at"], noted["last_at"]) == (0, 0, 0)
    stage.calls.made.clear()
    stage.sweep()
    assert "dynamodb.update_item" not in stage.calls.made


def test_who_ended_while_the_sweep_saw_an_older_run_is_not_told() -> None:
    stage = silent()

    def ends(call: str, when: str) -> None:
        if call == "sqs.send_message" and when == "after":
            stage.calls.hook = lambda call, when: None
            stage.ingest(build.body(build.ended()))

    stage.calls.hook = ends
    assert stage.sweep()["RunsStale"] == 0
    assert stage.events.taken == []
    assert run_of(stage)["status"] == "succeeded"


def test_an_item_of_a_newer_schema_costs_the_other_runs_nothing() -> None:
    stage = MemoryStage()
    refs = [RunRef("acme", f"run-{n}") for n in range(20)]
    for ref in refs:
        stage.ingest(build.body(build.step(1), run=ref))
    stage.drain()
    stage.now_ns = STEP_1_ENDED + HOUR
    stage.dynamodb.items[keys.run_partition(refs[3]), keys.RUN]["v"] = {"N": "99"}
    done = stage.sweep()
    assert (done["RunsFailed"], done["RunsStale"], done["SweepsUnfinished"]) == (1, 19, 0)


def test_a_page_of_runs_that_cannot_be_read_costs_the_other_pages_nothing() -> None:
    stage = MemoryStage()
    for n in range(20):
        stage.ingest(build.body(build.step(1), run=RunRef("acme", f"run-{n}")))
    stage.drain()
    stage.now_ns = STEP_1_ENDED + HOUR

    def once(call: str, when: str) -> None:
        if call == "dynamodb.batch_get_item" and when == "before":
            stage.calls.hook = lambda call, when: None
            raise client_error(call, "ThrottlingException")

    stage.calls.hook = once
    done = stage.sweep()
    assert done["RunsFailed"] == 1
    assert 0 < done["RunsStale"] < 20
    assert stage.sweep()["RunsStale"] == 20 - done["RunsStale"]


def test_a_sweep_without_time_goes_on_where_it_stopped_and_starves_nobody() -> None:
    stage = MemoryStage()
    refs = [RunRef("acme", f"run-{n}") for n in range(350)]
    for ref in refs:
        stage.ingest(build.body(build.step(1), run=ref))
    stage.drain()
    stage.now_ns = STEP_1_ENDED + HOUR
    stage.dynamodb.settle()
    sweeps = 0
    while not all(is_stale(stage, ref) for ref in refs):
        left = [240_000, 240_000]  # two pages of runs, then it is late
        stage.sweep_parts.sweep(lambda left=left: not (left and left.pop()), Swept())  # type: ignore[misc]
        stage.dynamodb.settle()
        sweeps += 1
        assert sweeps < 10
    assert sweeps == 4  # eight shards of fewer than a hundred runs, two at a time
    assert len(stage.events.taken) == len(refs)
    assert stage.sweep()["OpenRuns"] == len(refs)


def test_a_young_run_costs_one_read_and_an_idle_stage_none_but_of_the_lists() -> None:
    stage = silent(since=T0 + HOUR - 1)
    stage.calls.made.clear()
    stage.sweep()
    assert stage.calls.made.count("dynamodb.batch_get_item") == 1
    of_lists = 2 * keys.OPEN_RUN_SHARDS + 1  # open runs, overdue deletions, tenants
    assert stage.calls.made.count("dynamodb.query") == of_lists
    assert "dynamodb.update_item" not in stage.calls.made
