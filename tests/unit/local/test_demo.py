"""Comparing what a stage shows with what the recording adds up to, and showing it."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from functions.core.keys import RunRef
from functions.core.model import Totals
from local.demo import mismatches
from local.picture import save_picture
from local.recordings import ExpectedTotals
from local.results import PhaseResult, RunResult
from local.tables import json_of, table_of

COST = Decimal("123456789012.123456789012345678")
PHASE = PhaseResult("plan", 3, 1, COST, 1, Decimal(10), Decimal("20.5"), Decimal(30))
RESULT = RunResult(
    ref=RunRef("acme", "run-1"),
    status="failed",
    pipeline="research",
    totals=Totals(
        agents_total=3,
        failed_total=1,
        cost_usd_total=COST,
        cost_unknown_total=1,
        input_tokens=7,
        output_tokens=5,
        cached_tokens=2,
    ),
    summarised=True,
    phases=(PHASE,),
)
EXPECTED = ExpectedTotals("run-1", "failed", 3, 1, 0, COST, 1, 7, 5, 2)


def test_equal_totals_are_no_mismatch() -> None:
    assert mismatches([RESULT], [EXPECTED]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"status": "succeeded"},
        {"agents_total": 4},
        {"failed_total": 0},
        {"cancelled_total": 1},
        {"cost_usd_total": COST + Decimal("1e-18")},
        {"cost_unknown_total": 0},
        {"input_tokens": 8},
        {"output_tokens": 6},
        {"cached_tokens": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_number_that_differs_is_named(change: dict[str, object]) -> None:
    found = mismatches([RESULT], [replace(EXPECTED, **change)])  # type: ignore[arg-type]
    assert next(iter(change)) in found[0]


def test_calls_that_no_phase_covers_are_a_mismatch() -> None:
    short = replace(RESULT, phases=(replace(PHASE, calls=2),))
    assert mismatches([short], [EXPECTED]) == ["run-1: phases cover 2 of 3 calls"]


def test_json_keeps_money_exact() -> None:
    shown = json.loads(json.dumps(json_of(RESULT)))
    assert shown["cost_usd_total"] == str(COST)
    assert shown["phases"][0]["cost_usd"] == str(COST)
    assert shown["phases"][0]["p95_ms"] == 20.5


def test_a_table_shows_the_run_and_never_an_unknown_cost_as_nothing() -> None:
    silent = replace(PHASE, phase="[act]", calls=2, cost_usd=Decimal(0), cost_unknown=2)
    console = Console(width=120)
    with console.capture() as capture:
        console.print(table_of(replace(RESULT, phases=(PHASE, silent))))
    shown = capture.get()
    assert "research run-1 failed" in shown
    assert f"${COST}, 1 call of unknown cost" in shown
    (line,) = (line for line in shown.splitlines() if "[act]" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")][1:5] == ["2", "1", "", "2"]


def test_a_picture_shows_the_tables_and_loads_nothing(tmp_path: Path) -> None:
    save_picture([RESULT, replace(RESULT, pipeline="<script>")], tmp_path / "demo.svg")
    drawn = (tmp_path / "demo.svg").read_text()
    assert "research" in drawn
    assert "<script>" not in drawn
    assert not re.findall(r"""(?:href|src)=["']http|url\(["']?http|@import""", drawn)


@pytest.mark.parametrize("width", [70, 80, 120])
def test_on_a_narrow_terminal_no_digit_is_left_out(width: int) -> None:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table_of(RESULT))
    lines = [line.split("│")[1:-1] for line in capture.get().splitlines() if line.startswith("│")]
    assert "".join(line[0].strip() for line in lines) == "plan"
    assert "".join(line[3].strip() for line in lines) == str(COST)
