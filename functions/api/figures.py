"""What runs and phases add up to: exact sums, and percentiles as far as they can be had."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from functions.api import shapes, showing
from functions.core import times
from functions.core.model import Run, sum_exactly


@dataclass(frozen=True, slots=True)
class Part:
    """What one run, or one phase of it, adds to a group; `started_at`, of the run, in ns."""

    run_id: str
    started_at: int
    calls: int
    failed: int
    cost: Decimal
    cost_unknown: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    max_ms: float | None = None


def part_of_run(run: Run, sums: shapes.Sums) -> Part:
    return Part(
        run.ref.run_id,
        run.start.order.at,
        calls=sums.agents_total,
        failed=sums.failed_total,
        cost=Decimal(sums.cost_usd_total),
        cost_unknown=sums.cost_unknown_total,
        input_tokens=sums.input_tokens,
        output_tokens=sums.output_tokens,
        cached_tokens=sums.cached_tokens,
        p50_ms=sums.p50_ms,
        p95_ms=sums.p95_ms,
        max_ms=sums.max_ms,
    )


def part_of_phase(run: Run, phase: shapes.Phase) -> Part:
    return Part(
        run.ref.run_id,
        run.start.order.at,
        calls=phase.calls,
        failed=phase.failed,
        cost=Decimal(phase.cost_usd),
        cost_unknown=phase.cost_unknown,
        input_tokens=phase.input_tokens or 0,
        output_tokens=phase.output_tokens or 0,
        cached_tokens=phase.cached_tokens or 0,
        p50_ms=phase.p50_ms,
        p95_ms=phase.p95_ms,
        max_ms=phase.max_ms,
    )


def intervals_of(parts: Sequence[Part], width_ns: int) -> list[shapes.Interval]:
    """The same by the time at which runs started, oldest first."""
    by_start: dict[int, list[Part]] = {}
    for part in parts:
        by_start.setdefault(part.started_at // width_ns * width_ns, []).append(part)
    return [
        shapes.Interval(from_=times.text_of(start), **figures_of(by_start[start]))
        for start in sorted(by_start)
    ]


def figures_of(parts: Sequence[Part]) -> dict[str, Any]:
    """The fields of shapes.Figures; a run counts once, whatever it adds."""
    return {
        "runs": len({part.run_id for part in parts}),
        "calls": sum(part.calls for part in parts),
        "failed": sum(part.failed for part in parts),
        "cost_usd": showing.money(sum_exactly(part.cost for part in parts)),
        "cost_unknown": sum(part.cost_unknown for part in parts),
        "input_tokens": sum(part.input_tokens for part in parts),
        "output_tokens": sum(part.output_tokens for part in parts),
        "cached_tokens": sum(part.cached_tokens for part in parts),
        "p50_ms": _weighted_median((part.p50_ms, part.calls) for part in parts),
        "p95_ms": _weighted_median((part.p95_ms, part.calls) for part in parts),
        "max_ms": max((part.max_ms for part in parts if part.max_ms is not None), default=None),
    }


def _weighted_median(weighted: Iterable[tuple[float | None, int]]) -> float | None:
    """The smallest value that, with those below it, has half of all the weight."""
    known = sorted((value, weight) for value, weight in weighted if value is not None)
    half = sum(weight for _, weight in known) / 2
    below = 0
    for value, weight in known:
        below += weight
        if below >= half:
            return value
    return None
