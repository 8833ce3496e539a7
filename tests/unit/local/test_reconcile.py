"""`runtally reconcile`: drift is found field by field, and recounts are asked for."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from functions.adapters.dynamodb import DynamoDBTable
from functions.core import keys
from local.commands import LocalStageError
from local.reading import Reading
from local.reconciling import LOOKS, Reconcile
from tests.build import RUN, body, ended, started, step
from tests.memory_stage import RECOUNTS
from tests.unit.local.terminal import Terminal

STEPS = [step(n, cost_usd="0.1", input_tokens=7, phase="act") for n in range(1, 4)]


def recorded(terminal: Terminal) -> None:
    terminal.record("run-1", started(), *STEPS, step(4, status="failed"), ended())


def falsify(terminal: Terminal, item: keys.Whole, field: str, value: Any) -> None:
    table = DynamoDBTable(terminal.stage.dynamodb, terminal.stage.table_name)
    table.update(keys.item_of_run(RUN, item), f"SET #{field} = :v", "", {":v": value})


def asked_for(terminal: Terminal) -> list[Any]:
    return [msgspec.json.decode(m.body) for m in terminal.memory.sqs.queues.get(RECOUNTS, [])]


def test_an_exact_run_is_said_to_be_exact_and_nothing_is_asked_for(terminal: Terminal) -> None:
    recorded(terminal)
    assert "Every run is shown exactly" in terminal("reconcile", "run-1")
    answer = terminal.json("reconcile", "run-1")
    assert answer == {
        "exact": True,
        "runs": [
            {
                "run_id": "run-1",
                "calls": 4,
                "drift": [],
                "shown_exactly": True,
                "recount_requested": False,
            }
        ],
    }
    assert asked_for(terminal) == []


@pytest.mark.parametrize("item", ["TOTALS", "SUMMARY"])
@pytest.mark.parametrize(
    ("field", "false", "counted"),
    [
        ("agents_total", 3, 4),
        ("agents_total", 5, 4),
        ("failed_total", 0, 1),
        ("cost_usd_total", Decimal("0.300000000000000001"), "0.3"),
        ("cost_unknown_total", 2, 1),
        ("input_tokens", 20, 21),
    ],
)
def test_each_field_that_is_off_is_named_and_a_recount_asked_for(
    terminal: Terminal, item: keys.Whole, field: str, false: Any, counted: Any
) -> None:
    recorded(terminal)
    falsify(terminal, item, field, false)
    shown_wrong = item == "SUMMARY" or (field, false) == ("agents_total", 5)
    answer = terminal.json("reconcile", "run-1", code=int(shown_wrong))
    (run,) = answer["runs"]
    stands = str(false) if isinstance(false, Decimal) else false
    assert run["drift"] == [{"item": item, "field": field, "stands": stands, "counted": counted}]
    assert answer["exact"] is not shown_wrong
    assert run["recount_requested"]
    assert asked_for(terminal) == [{"tenant_id": "acme", "run_id": "run-1"}]


def test_phases_that_are_off_are_drift_too(terminal: Terminal) -> None:
    recorded(terminal)
    falsify(terminal, "SUMMARY", "phases_summary", [])
    assert "SUMMARY.phases_summary" in terminal("reconcile", "run-1", code=1)


def test_a_missing_summary_is_made_and_waited_for(terminal: Terminal) -> None:
    recorded(terminal)
    memory = terminal.memory
    del memory.dynamodb.items[keys.item_of_run(RUN, keys.SUMMARY)]
    assert "SUMMARY.agents_total  missing, counted 4" in terminal("reconcile", "run-1", code=1)

    def recount_at_once(call: str, when: str) -> None:
        if (call, when) == ("sqs.send_message", "after"):
            memory.calls.hook = lambda *_: None
            memory.recount()

    memory.calls.hook = recount_at_once
    assert "1 recount asked for" in terminal("reconcile", "run-1", "--wait")
    assert terminal.json("reconcile", "run-1")["exact"]


def test_a_run_that_is_being_recorded_may_be_counted_a_moment_later(terminal: Terminal) -> None:
    terminal.record("run-1", started(), *STEPS)
    terminal.record("run-1", step(4), counted=False)
    looks: list[int] = []

    def count_after_the_first_look() -> None:
        looks.append(1)
        terminal.memory.drain()

    reconcile = Reconcile(Reading.of(terminal.stage, "acme").reader, count_after_the_first_look)
    found = reconcile(RUN)
    assert found is not None
    assert (found.calls, found.drift, len(looks)) == (4, [], 1)


def test_steps_that_come_while_it_counts_are_no_drift(terminal: Terminal) -> None:
    terminal.record("run-1", started(), *STEPS)
    memory = terminal.memory
    steps = iter(range(10, 100))

    def record_more(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.query", "before"):
            memory.calls.hook = lambda *_: None
            assert memory.ingest(body(step(next(steps)))) == []
            memory.drain()
            memory.calls.hook = record_more

    memory.calls.hook = record_more
    assert terminal.json("reconcile", "run-1")["exact"]


def test_totals_of_a_running_run_that_stay_behind_are_drift(terminal: Terminal) -> None:
    terminal.record("run-1", started(), *STEPS)
    terminal.record("run-1", step(4), counted=False)
    waited: list[int] = []
    reconcile = Reconcile(Reading.of(terminal.stage, "acme").reader, lambda: waited.append(1))
    found = reconcile(RUN)
    assert found is not None
    assert not found.shown_exactly
    assert {d.field for d in found.drift} == {"agents_total", "cost_unknown_total"}
    assert len(waited) == LOOKS - 1


def test_since_takes_all_runs_that_started_since_and_force_asks_for_each(
    terminal: Terminal,
) -> None:
    for n in range(30):
        terminal.record(f"run-{n}", started(), step(1), ended())
    since = ("--since", "2026-01-01T00:00:00Z")
    assert "30 runs with 30 calls counted" in terminal("reconcile", *since)
    assert asked_for(terminal) == []
    assert "30 recounts asked for" in terminal("reconcile", *since, "--force")
    assert {request["run_id"] for request in asked_for(terminal)} == {f"run-{n}" for n in range(30)}


def test_a_run_in_buckets_is_counted_in_step_order(terminal: Terminal) -> None:
    steps = [step(n, phase=f"phase {n % 7}") for n in range(50)]
    assert terminal.memory.ingest(body(started(), *steps, ended(), buckets=8)) == []
    terminal.memory.drain()
    assert terminal.json("reconcile", "run-1")["runs"][0]["drift"] == []


@pytest.mark.parametrize("arguments", [(), ("run-1", "--since", "2h")])
def test_either_a_run_or_a_time_is_needed(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    with pytest.raises(LocalStageError, match="--since"):
        terminal("reconcile", *arguments)


def test_a_run_that_is_not_there_is_told(terminal: Terminal) -> None:
    with pytest.raises(LocalStageError, match="no such run"):
        terminal("reconcile", "run-1")
