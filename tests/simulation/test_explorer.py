"""The proof: schedules hold, every planted bug is found, and nothing passes by doing nothing."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest

from functions.ingest import handler as ingest_handler
from functions.lake import handler as lake_handler
from functions.summarize import handler as summarize_handler
from functions.summarize import recount_handler
from local.paths import ROOT
from tests.simulation.bugs import BUGS, FOCUS
from tests.simulation.explorer import Explored, explore, play
from tests.simulation.faults import kinds_of
from tests.simulation.world import Plan

PARTS, SCHEDULES = 6, 500
_LAKE_MEETS = (
    "lake/overtaken",
    "lake/claim refused",
    "lake/moved to another day",
    "lake/under two days for a moment",
    "lake/asked for, written",
    "lake/asked for, nothing to write",
    "weather/lake killed",
    "weather/lake answer lost",
    "weather/lake bisected",
    "weather/lake given up",
    "weather/lake shard split",
    "s3.get_object_retention lake/none",
)


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_the_schedule_all_invariants_hold(part: int) -> None:
    first = 1 + part * SCHEDULES
    explored = explore(range(first, first + SCHEDULES))
    assert not explored.violations, (
        f"python -m tests.simulation --schedules 1 --seed {explored.violations[0].seed}: "
        f"{explored.violations[0].as_json()}"
    )
    assert explored.schedules == SCHEDULES


@pytest.mark.parametrize("name", BUGS)
def test_every_planted_bug_is_found(name: str) -> None:
    focus = FOCUS.get(name, {})
    explored = explore(range(1, 1_001), BUGS[name], focus=focus, most_violations=1)
    assert explored.violations, f"{name} was not found in {explored.schedules:,} schedules"


@pytest.mark.parametrize(
    "handler", [ingest_handler, summarize_handler, recount_handler, lake_handler]
)
def test_functions_that_do_nothing_are_found(handler: Any) -> None:
    def nothing(*_: Any) -> dict[str, Any]:
        return {"batchItemFailures": []}

    def planted() -> AbstractContextManager[object]:
        return mock.patch.object(handler, "process", nothing)

    assert explore(range(1, 200), planted, most_violations=1).violations


def test_a_lake_meets_what_it_is_made_for() -> None:
    coverage = explore(range(1, 101), focus={"lake": True}).coverage
    missed = [name for name in _LAKE_MEETS if not coverage[name]]
    assert not missed
    assert not explore(range(1, 6), focus={"lake": False}).coverage["s3.put_object lake/none"]


def test_a_seed_is_a_schedule() -> None:
    once, again = Explored(), Explored()
    for seed in range(1, 30):
        play(Plan.of(seed), once)
        play(Plan.of(seed), again)
    assert once == again
    assert once.coverage


def test_a_violation_is_made_as_small_as_it_gets_and_stays_one() -> None:
    """No fault is left that it does not take."""
    planted = BUGS["object optional"]
    (violation,) = explore(range(1, 200), planted, most_violations=1).violations
    faults = frozenset(number for number, _, _ in violation.faults)
    assert faults
    assert play(Plan.of(violation.seed, only=faults), Explored(), planted) is not None
    for number in faults:
        fewer = Plan.of(violation.seed, only=faults - {number})
        assert play(fewer, Explored(), planted) is None


def test_each_kind_of_fault_can_happen_where_it_belongs() -> None:
    assert "own condition" in kinds_of("dynamodb.put_item AGENT")
    assert "conflict" in kinds_of("s3.put_object agent")
    assert "answer lost" not in kinds_of("dynamodb.query AGENT")  # reading changes nothing
    assert "throttled burst" not in kinds_of("sqs.send_message recounts")


def _run(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "tests.simulation", "--json", "--processes", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, answer


@pytest.mark.parametrize(
    ("arguments", "code", "check"),
    [
        (("--schedules", "20"), 0, lambda answer: answer["schedules"] == 20),
        (
            ("--schedules", "40", "--plant", "unconditional ADD"),
            1,
            lambda answer: answer["found"][0]["seed"] > 0 and answer["violations"] > 0,
        ),
    ],
)
def test_the_command_says_what_it_played_and_fails_on_a_violation(
    arguments: tuple[str, ...], code: int, check: Callable[[dict[str, Any]], bool]
) -> None:
    exit_code, answer = _run(*arguments)
    assert exit_code == code
    assert check(answer)
    assert answer["calls"] > 100
    assert sum(answer["coverage"].values()) > answer["calls"]
    assert answer["seconds"] > 0
