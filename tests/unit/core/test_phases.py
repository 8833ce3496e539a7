"""The fold over all steps, and the phase of a step in a tree."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from functions.core.model import PhaseSummary, StepRow, Totals
from functions.core.phases import NO_PHASE, phases_of, summarize_steps
from tests.event_files import EVENTS

CASES: list[dict[str, Any]] = json.loads((EVENTS / "phases.json").read_text())
MS = 1_000_000


def row(n: int, start_ms: int = 0, ms: int = 1, **fields: Any) -> StepRow:
    given_fields: dict[str, Any] = {"kind": "model", "status": "succeeded", **fields}
    return StepRow(
        step_id=f"{n:019d}-00000000",
        started_at=start_ms * MS,
        ended_at=(start_ms + ms) * MS,
        parent_id=f"{parent:019d}-00000000"
        if (parent := given_fields.pop("parent", None))
        else None,
        **given_fields,
    )


def decimals(*numbers: int) -> list[Decimal]:
    return [Decimal(number) for number in numbers]


def phases(*rows: StepRow) -> list[str]:
    resolved = phases_of(rows)
    return [resolved[row.step_id] for row in rows]


def only(*rows: StepRow) -> PhaseSummary:
    (phase,) = summarize_steps(rows, len(rows)).phases
    return phase


def fields_of(step: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in step.items() if name != "expected"}


@pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])
def test_the_phase_of_a_step_follows_the_rules_that_the_page_follows_too(
    case: dict[str, Any],
) -> None:
    tree = [replace(row(n), **fields_of(step)) for n, step in enumerate(case["steps"])]
    assert phases_of(tree) == {step["step_id"]: step["expected"] for step in case["steps"]}


def test_a_chain_as_long_as_a_run_needs_no_recursion() -> None:
    chain = [row(n, parent=n - 1 or None, name=str(n)) for n in range(1, 50_001)]
    assert set(phases(*reversed(chain))) == {NO_PHASE, "2"}


def test_percentiles_are_nearest_ranks() -> None:
    phase = only(*(row(n, ms=n) for n in range(1, 21)))
    assert [phase.p50_ms, phase.p95_ms, phase.max_ms] == decimals(10, 19, 20)
    phase = only(row(1, ms=7))
    assert [phase.p50_ms, phase.p95_ms, phase.max_ms] == decimals(7, 7, 7)


def test_wall_is_first_to_last_and_busy_counts_overlaps_once() -> None:
    phase = only(row(1, 0, 10), row(2, 5, 10), row(3, 5, 2), row(4, 100, 1))
    assert [phase.wall_ms, phase.busy_ms] == decimals(101, 16)
    assert (phase.first_start, phase.last_end) == (0, 101 * MS)


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    phase = only(row(1, 100, -50))
    assert [phase.wall_ms, phase.busy_ms, phase.max_ms] == decimals(0, 0, 0)


def test_phases_come_in_order_of_first_start_with_exact_sums() -> None:
    summary = summarize_steps(
        [
            row(1, 50, phase="b", cost=Decimal("0.1"), input_tokens=1, agent="x", model="m"),
            row(2, 10, phase="a", status="failed", cost=Decimal("1E-18")),
            row(3, 60, phase="b", cost=None, agent="y", output_tokens=4, cached_tokens=2),
            row(4, 70, phase="b", cost=Decimal("0.2"), agent="x", status="cancelled"),
        ],
        at_total=4,
    )
    first, second = summary.phases
    assert (first.phase, first.calls, first.failed) == ("a", 1, 1)
    assert (second.phase, second.calls, second.failed) == ("b", 3, 0)
    assert second.cost_usd == Decimal("0.3")
    assert second.cost_unknown == 1
    assert (second.input_tokens, second.output_tokens, second.cached_tokens) == (1, 4, 2)
    assert (second.agents, second.models) == (("x", "y"), ("m",))
    assert summary.totals.cost_usd_total == Decimal("0.300000000000000001")
    assert summary.totals.cancelled_total == 1


def test_names_of_a_phase_are_the_first_eight_and_cut() -> None:
    phase = only(*(row(n, agent=f"agent {n}", model="m" * 300) for n in range(1, 20)))
    assert phase.agents == tuple(f"agent {n}" for n in range(1, 9))
    assert phase.models == ("m" * 128,)


def test_phases_that_take_too_many_bytes_are_rolled_up_before_there_are_200() -> None:
    rows = [
        row(n + repeat * 1_000, n, phase=f"{n:03}" + "长" * 60, agent=f"{repeat}" + "a" * 128)
        for repeat in (0, 1)
        for n in range(1, 200)
    ]
    *phases, rest = summarize_steps(rows, len(rows)).phases
    assert len(phases) < 198
    assert rest.rolled_up == 199 - len(phases)
    assert sum(phase.calls for phase in phases) + rest.calls == len(rows)


ROWS = st.lists(
    st.builds(
        row,
        st.integers(1, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        phase=st.sampled_from(["", "a", "b", "长"]),
        name=st.text(max_size=3),
        parent=st.none() | st.integers(1, 10**6),
        cost=st.none() | st.decimals(0, 10**11, places=18),
    ),
    unique_by=lambda row: row.step_id,
)


@given(ROWS)
def test_every_step_counts_in_exactly_one_phase(rows: list[StepRow]) -> None:
    summary = summarize_steps(sorted(rows, key=lambda r: r.step_id), len(rows))
    assert sum(phase.calls for phase in summary.phases) == len(rows)
    assert summary.totals == Totals.of(rows)
    costs = [Fraction(phase.cost_usd) for phase in summary.phases]
    assert summary.totals.cost_usd_total == sum(costs, Fraction(0))
    assert [p.first_start for p in summary.phases] == sorted(p.first_start for p in summary.phases)
    for phase in summary.phases:
        assert phase.busy_ms <= phase.wall_ms
        assert phase.p50_ms <= phase.p95_ms <= phase.max_ms
