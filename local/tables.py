"""Runs and their phases as tables for people, and how their cells are written."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from functions.api import shapes
from local import moments

_COLUMNS: Final = (
    "run", "pipeline", "status", "started", "age", "elapsed", "calls", "failed", "cost $",
    "unknown", "phases",
)  # fmt: skip
_UNBOUNDED: Final = Console(width=10_000)
_ROOM_OF_OTHERS: Final = 50
_PHASES_SHOWN: Final = 12
_PHASES_IN_SHORT: Final = 4
_SHORT_CELLS: Final = 30
_COLOURS: Final = {"succeeded": "green", "failed": "red"}
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def runs_table(runs: Iterable[shapes.ListedRun], now_ns: int, width: int) -> Table:
    """A line a run; columns that matter less are left out where not all of them fit."""
    rows = [_cells_of(run, now_ns) for run in runs]
    columns = list(_COLUMNS)
    for expendable in ("phases", "elapsed", "started", "pipeline"):
        table = _with_columns(columns, rows, width)
        if table.__rich_measure__(_UNBOUNDED, _UNBOUNDED.options).maximum <= width:
            return table
        columns.remove(expendable)
    return _with_columns(columns, rows, width)


def _with_columns(columns: Iterable[str], rows: Sequence[Mapping[str, Text]], width: int) -> Table:
    table = plain_table()
    for name in columns:
        right = name in {"elapsed", "calls", "failed", "cost $", "unknown"}
        table.add_column(
            name,
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=name in {"status", "calls", "failed", "unknown"},
        )
    # An id is copied, so that it stays in one line, unless it takes the others' room.
    widest = max((len(cells["run"]) for cells in rows), default=0)
    table.columns[0].no_wrap = widest + _ROOM_OF_OTHERS <= width
    for cells in rows:
        table.add_row(*(cells[name] for name in columns))
    return table


def _cells_of(run: shapes.ListedRun, now_ns: int) -> dict[str, Text]:
    totals = run.totals
    cost = known_cost(totals.cost_usd_total, totals.cost_unknown_total, totals.agents_total)
    return {
        "run": said(run.run_id),
        "pipeline": said(run.pipeline),
        "status": status(run.status),
        "started": Text(moments.local_time(run.started_at)),
        "age": Text(moments.ago(run.started_at, now_ns)),
        "elapsed": Text(moments.elapsed(run.started_at, run.ended_at, now_ns)),
        "calls": Text(f"{totals.agents_total:,}"),
        "failed": Text(blank_if_none(totals.failed_total), "red"),
        "cost $": Text(cost),
        "unknown": Text(blank_if_none(totals.cost_unknown_total)),
        "phases": _in_short(run.phases),
    }


def _in_short(phases: shapes.Phases) -> Text:
    """The first phases by name and calls; `≥` when they are those of the first calls alone."""
    sign = "≥" if phases.partial else ""
    names = [f"{phase.phase} {sign}{phase.calls:,}" for phase in phases.entries[:_PHASES_IN_SHORT]]
    more = len(phases.entries) - len(names)
    short = said(" · ".join([*names, *([f"+{more}"] if more > 0 else [])]))
    short.truncate(_SHORT_CELLS, overflow="ellipsis")
    return short


def phases_table(run: shapes.Run, totals: shapes.Sums, phases: shapes.Phases) -> Table:
    """A run's totals below its name, a line for each of its first phases."""
    table = Table(
        title=Text.assemble(said(run.pipeline, "bold"), f" {run.run_id} ", status(run.status)),
        caption=f"{_totals_in_words(totals)}{_partial_in_words(totals, phases)}",
        title_justify="left",
        caption_justify="left",
    )
    # On a narrow terminal names and costs break into two lines; a digit is never left out.
    table.add_column("phase", overflow="fold", min_width=8)
    for name in ("calls", "failed", "cost $", "unknown", "p50 ms", "p95 ms", "wall ms"):
        table.add_column(name, justify="right", overflow="fold", no_wrap=name != "cost $")
    for phase in phases.entries[:_PHASES_SHOWN]:
        table.add_row(said(phase.phase), *_numbers_of(phase))
    hidden = len(phases.entries) - _PHASES_SHOWN
    if hidden > 0:
        table.add_row(f"… and {hidden:,} more")
    return table


def _partial_in_words(totals: shapes.Sums, phases: shapes.Phases) -> str:
    """What of the run its phases leave out; nothing when they are complete."""
    if not phases.partial:
        return ""
    which = "first" if phases.source == "preview" else "summarised"
    return f"\npartial: phases of the {which} {phases.calls:,} of {totals.agents_total:,} calls"


def _totals_in_words(totals: shapes.Sums) -> str:
    return (
        f"{counted(totals.agents_total, 'call')}, {totals.failed_total:,} failed; "
        f"{cost_in_words(totals)}; "
        f"tokens: {totals.input_tokens:,} in ({totals.cached_tokens:,} cached), "
        f"{totals.output_tokens:,} out"
    )


def cost_in_words(totals: shapes.Sums) -> str:
    unknown = totals.cost_unknown_total
    if unknown == totals.agents_total:
        return "cost unknown"
    known = f"${totals.cost_usd_total}"
    return f"{known}, {counted(unknown, 'call')} of unknown cost" if unknown else known


def _numbers_of(phase: shapes.Phase) -> Sequence[str]:
    """What is nothing is left blank, and a cost that nobody told is not shown as 0."""
    return (
        f"{phase.calls:,}",
        blank_if_none(phase.failed),
        known_cost(phase.cost_usd, phase.cost_unknown, phase.calls),
        blank_if_none(phase.cost_unknown),
        *(milliseconds(ms) for ms in (phase.p50_ms, phase.p95_ms, phase.wall_ms)),
    )


def blank_if_none(number: int) -> str:
    return f"{number:,}" if number else ""


def known_cost(cost_usd: str, unknown: int, calls: int) -> str:
    return cost_usd if unknown < calls else ""


def milliseconds(ms: float | Decimal | None) -> str:
    if ms is None:
        return ""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 1 else f"{ms:.3f}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def plain_table(title: str | Text | None = None) -> Table:
    """A table without lines, which leaves its room to the columns."""
    return Table(
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def status(name: str) -> Text:
    return Text(name, _COLOURS.get(name, "yellow"))


def said(text: str | None, style: str = "") -> Text:
    """Text of somebody else's, as text: no markup, and nothing that a terminal obeys."""
    return Text(_CONTROL.sub("�", text or ""), style)
