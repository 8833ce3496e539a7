"""`runtally insights` and `compare`, from their arguments to their output."""

import msgspec
import pytest
from rich.cells import cell_len

from functions.api import shapes
from local.insights import _change
from tests.build import SECOND, T0, ended, started, step
from tests.unit.local.terminal import Terminal

ALWAYS = ("--since", "2026-01-01T00:00:00Z")


@pytest.fixture
def two_pipelines(terminal: Terminal) -> Terminal:
    for n, cost in ((1, "0.1"), (2, "0.2")):
        plan, act = step(1, phase="plan", cost_usd=cost), step(2, phase="行动")
        terminal.record(f"run-{n}", started(T0 + n * SECOND), plan, act, ended())
    failed = [step(n, phase="行动", status="failed") for n in (1, 2, 3)]
    terminal.record("run-3", started(T0, "translate"), *failed, ended(status="failed"))
    return terminal


def test_each_pipeline_is_a_table_with_its_phases_and_sums(two_pipelines: Terminal) -> None:
    shown = two_pipelines("insights", *ALWAYS)
    research, translate = shown.split("translate  1 run: 1 failed")
    assert "research  2 runs: 2 succeeded" in research
    rows = {line.split()[0]: line.split() for line in research.splitlines() if line.split()}
    assert rows["plan"][1:4] == ["2", "2", "0.3"]
    assert rows["行动"][1:4] == ["2", "2", "2"]
    assert rows["all"][1:5] == ["2", "4", "0.3", "2"]
    assert "partial" not in shown
    (all_of_it,) = (line for line in translate.splitlines() if line.startswith("all"))
    assert all_of_it.split()[1:5] == ["1", "3", "3", "3"]


def test_names_of_any_script_are_aligned(two_pipelines: Terminal) -> None:
    shown = two_pipelines("insights", *ALWAYS, "--pipeline", "research").splitlines()
    table = [line for line in shown if line.split()[:1] in (["phase"], ["plan"], ["行动"])]
    assert len({cell_len(line.rstrip()) for line in table}) == 1


def test_a_pipeline_can_be_asked_for_and_a_time_without_runs_says_so(
    two_pipelines: Terminal,
) -> None:
    assert "research" not in two_pipelines("insights", *ALWAYS, "--pipeline", "translate")
    assert "No runs started" in two_pipelines(
        "insights", *ALWAYS, "--until", "2026-01-02T00:00:00Z"
    )


def test_runs_without_a_summary_are_flagged(two_pipelines: Terminal) -> None:
    two_pipelines.record("run-4", started(), step(1, phase="plan"))
    shown = two_pipelines("insights", *ALWAYS)
    assert "1 partial" in shown
    assert "partial: 1 run without a complete summary" in shown


def test_json_is_the_apis(two_pipelines: Terminal) -> None:
    text = two_pipelines("insights", *ALWAYS, "--json")
    answer = msgspec.json.decode(text, type=shapes.Insights)
    assert answer.runs == 3
    assert answer.pipelines[0].cost_usd == "0.3"
    assert text == msgspec.json.encode(answer).decode() + "\n"
    text = two_pipelines("compare", "run-1", "run-2", "--json")
    compared = msgspec.json.decode(text, type=shapes.Comparison)
    assert compared.change.cost_usd == 100
    assert text == msgspec.json.encode(compared).decode() + "\n"


def test_two_runs_are_compared_phase_by_phase(two_pipelines: Terminal) -> None:
    shown = two_pipelines("compare", "run-1", "run-2")
    (plan,) = (line for line in shown.splitlines() if "plan" in line)
    assert "0.1 → 0.2 +100.0%" in plan
    assert "1 → 1 │" in plan  # what is equal is no change
    (every,) = (line for line in shown.splitlines() if "│ all" in line)
    assert "0.1 → 0.2 +100.0%" in every


def test_a_phase_that_only_one_has_is_said_to_be_its(two_pipelines: Terminal) -> None:
    shown = two_pipelines("compare", "run-1", "run-3")
    assert "plan (only A)" in shown
    assert "plan (only B)" in two_pipelines("compare", "run-3", "run-1")
    (acted,) = (line for line in shown.splitlines() if "行动" in line)
    assert "1 → 3 +200.0%" in acted
    assert "? → ?" in acted


@pytest.mark.parametrize(
    ("name", "per_cent", "text", "colour"),
    [
        ("cost_usd", 1.5, "+1.5%", "red"),
        ("p95_ms", -33.33, "-33.3%", "green"),
        ("failed", 100.0, "+100.0%", "red"),
        ("calls", 1234.0, "+1,234.0%", ""),
        ("cost_usd", 0.0, "", ""),
        ("cost_usd", None, "", ""),
    ],
)
def test_better_is_green_and_worse_is_red(
    name: str, per_cent: float | None, text: str, colour: str
) -> None:
    change = _change(name, per_cent)
    assert (change.plain, str(change.style)) == (text, colour)
