"""What a run came to, as a table for people and as JSON for programs."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from rich.markup import escape
from rich.table import Table

from functions.core.model import Totals
from local.results import PhaseResult, RunResult

_PHASES_SHOWN = 12


def table_of(result: RunResult) -> Table:
    """A run's totals below its name, a line for each of its first phases."""
    totals = result.totals
    colour = {"succeeded": "green", "failed": "red"}.get(result.status, "yellow")
    name = f"[bold]{escape(result.pipeline)}[/] {result.ref.run_id}"
    table = Table(
        title=f"{name} [{colour}]{result.status}[/]",
        caption=f"{counted(totals.agents_total, 'call')}, {totals.failed_total:,} failed; "
        f"{_cost_of(totals)}; "
        f"tokens: {totals.input_tokens:,} in ({totals.cached_tokens:,} cached), "
        f"{totals.output_tokens:,} out",
        title_justify="left",
        caption_justify="left",
    )
    # On a narrow terminal names and costs break into two lines; a digit is never left out.
    table.add_column("phase", overflow="fold", min_width=8)
    for name in ("calls", "failed", "cost $", "unknown", "p50 ms", "p95 ms", "wall ms"):
        table.add_column(name, justify="right", overflow="fold", no_wrap=name != "cost $")
    for phase in result.phases[:_PHASES_SHOWN]:
        table.add_row(escape(phase.phase), *_numbers_of(phase))
    hidden = len(result.phases) - _PHASES_SHOWN
    if hidden > 0:
        table.add_row(f"… and {hidden:,} more")
    return table


def _cost_of(totals: Totals) -> str:
    unknown = totals.cost_unknown_total
    if unknown == totals.agents_total:
        return "cost unknown"
    known = f"${totals.cost_usd_total:f}"
    return f"{known}, {counted(unknown, 'call')} of unknown cost" if unknown else known


def _numbers_of(phase: PhaseResult) -> Sequence[str]:
    """What is nothing is left blank, and a cost that nobody told is not shown as 0."""
    return (
        f"{phase.calls:,}",
        f"{phase.failed:,}" if phase.failed else "",
        f"{phase.cost_usd:f}" if phase.cost_unknown < phase.calls else "",
        f"{phase.cost_unknown:,}" if phase.cost_unknown else "",
        *(_milliseconds(ms) for ms in (phase.p50_ms, phase.p95_ms, phase.wall_ms)),
    )


def _milliseconds(ms: Decimal) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 1 else f"{ms:.3f}"


def json_of(result: RunResult) -> dict[str, Any]:
    """Money is a string, because a number of JSON is a float to most readers; times are numbers."""
    return {
        "run_id": result.ref.run_id,
        "tenant_id": result.ref.tenant_id,
        "pipeline": result.pipeline,
        "status": result.status,
        "agents_total": result.totals.agents_total,
        "failed_total": result.totals.failed_total,
        "cost_usd_total": _money(result.totals.cost_usd_total),
        "cost_unknown_total": result.totals.cost_unknown_total,
        "input_tokens": result.totals.input_tokens,
        "output_tokens": result.totals.output_tokens,
        "cached_tokens": result.totals.cached_tokens,
        "phases": [
            {
                "phase": phase.phase,
                "calls": phase.calls,
                "failed": phase.failed,
                "cost_usd": _money(phase.cost_usd),
                "cost_unknown": phase.cost_unknown,
                "p50_ms": float(phase.p50_ms),
                "p95_ms": float(phase.p95_ms),
                "wall_ms": float(phase.wall_ms),
            }
            for phase in result.phases
        ],
    }


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _money(amount: Decimal) -> str:
    return f"{amount:f}"
