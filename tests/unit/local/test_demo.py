"""Comparing what a stage shows with what the recording adds up to, and showing it."""

import html
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from functions.api import shapes
from functions.core.keys import RunRef
from local.demo import Demo, look_around, mismatches
from local.picture import save_picture
from local.reading import Reading
from local.recordings import ExpectedTotals
from local.tables import phases_table
from tests.build import ended, started, step
from tests.unit.local.terminal import Terminal

COST = Decimal("123456789012.123456789012345678")
PHASE = shapes.Phase(
    "plan", 3, 1, str(COST), 1, p50_ms=10.0, p95_ms=20.5, max_ms=20.5, wall_ms=30.0
)
TOTALS = shapes.Sums("summary", 3, 1, 0, str(COST), 1, 7, 5, 2, 0, 0)
RESULT = shapes.ListedRun(
    run_id="run-1",
    pipeline="research",
    status="failed",
    started_at="2026-11-30T02:46:01.000000000Z",
    totals=TOTALS,
    preview=shapes.Preview("all 3", 3, []),
    phases=shapes.Phases("summary", partial=False, calls=3, entries=[PHASE]),
)
EXPECTED = ExpectedTotals("run-1", "failed", 3, 1, 0, COST, 1, 7, 5, 2)


def with_phases(*entries: shapes.Phase) -> shapes.ListedRun:
    phases = msgspec.structs.replace(RESULT.phases, entries=list(entries))
    return msgspec.structs.replace(RESULT, phases=phases)


def table_text(run: shapes.ListedRun, width: int = 120) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(phases_table(run, run.totals, run.phases))
    return capture.get()


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
    short = with_phases(msgspec.structs.replace(PHASE, calls=2))
    assert mismatches([short], [EXPECTED]) == ["run-1: phases cover 2 of 3 calls"]


def test_json_keeps_money_exact() -> None:
    demo = Demo([RunRef("acme", "run-1")], [RESULT], [], seconds=12.34, write_units=Decimal("3.3"))
    shown: dict[str, Any] = demo.as_json()
    assert shown["write_units_per_step"] == 1.1
    (run,) = shown["runs"]
    assert (run["tenant_id"], run["run_id"]) == ("acme", "run-1")
    assert run["cost_usd_total"] == str(COST)
    assert run["phases"][0]["cost_usd"] == str(COST)
    assert run["phases"][0]["p95_ms"] == 20.5


def test_a_table_shows_the_run_and_never_an_unknown_cost_as_nothing() -> None:
    silent = shapes.Phase("[act]", 2, 1, "0", 2)
    shown = table_text(with_phases(PHASE, silent))
    assert "research run-1 failed" in shown
    assert f"${COST}, 1 call of unknown cost" in shown
    (line,) = (line for line in shown.splitlines() if "[act]" in line)
    assert [cell.strip() for cell in line.strip("│").split("│")][1:5] == ["2", "1", "", "2"]


@pytest.mark.parametrize("width", [70, 80, 120])
def test_on_a_narrow_terminal_no_digit_is_left_out(width: int) -> None:
    shown = table_text(RESULT, width).splitlines()
    lines = [line.split("│")[1:-1] for line in shown if line.startswith("│")]
    assert "".join(line[0].strip() for line in lines) == "plan"
    assert "".join(line[3].strip() for line in lines) == str(COST)


def test_it_ends_with_the_list_and_with_a_run_in_which_something_failed(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.record("run-1", started(pipeline="翻译"), step(1), ended())
    terminal.record("run-2", started(), step(1, status="failed", error="<script>"), ended())
    reading = Reading.of(terminal.stage, "acme")
    results = list(reading.runs(limit=None))

    def draw(out: Console) -> None:
        look_around(out, reading, results)

    console = Console(width=120)
    with console.capture() as capture:
        draw(console)
    listed, _, shown = capture.get().partition("$ runtally show run-2\n")
    assert all(f"\nrun-{n} " in listed for n in (1, 2))
    assert "Failed calls: 1" in shown
    save_picture(draw, tmp_path / "demo.svg")
    drawn = (tmp_path / "demo.svg").read_text()
    assert "research" in drawn
    assert "<script>" not in drawn
    texts = re.findall(r'textLength="(.*?)"[^>]*>(.+?)<', drawn)
    assert any("翻译" in text for _, text in texts)
    widths = {round(float(length) / cell_len(html.unescape(text)), 1) for length, text in texts}
    assert len(widths) == 1  # each cell is as wide as any other
    assert not re.findall(r"""(?:href|src)=["']http|url\(["']?http|@import""", drawn)
