"""The commands `runtally insights` and `compare`: many runs together, and two side by side."""

import time
from collections.abc import Iterable
from typing import Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from functions.api import shapes
from local.connect import Connect, connect
from local.moments import Since, Until, moment
from local.reading import TenantOptions, write_json
from local.tables import (
    blank_if_none,
    cost_in_words,
    counted,
    known_cost,
    milliseconds,
    plain_table,
    said,
    status,
)

_HERE = TenantOptions()
_LOOK_BACK: Final = "7d"
_LESS_IS_BETTER: Final = {"failed", "cost_usd", "p50_ms", "p95_ms"}
_COMPARED: Final = ("calls", "failed", "cost_usd", "p50_ms", "p95_ms")


def insights(
    *,
    since: Annotated[Since, Parameter(show_default=lambda _: _LOOK_BACK)] = None,
    until: Until = None,
    pipeline: str | None = None,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Add up the runs of a time, by pipeline and phase.

    Percentiles are those of the median run, each run weighted by its calls.

    Parameters
    ----------
    pipeline
        Only runs of this pipeline, by its exact name.
    """
    with at.reading(connect) as reading:
        wanted = {
            "from": since or moment(_LOOK_BACK, time.time_ns()),
            "to": until,
            "pipeline": pipeline,
        }
        answer: shapes.Insights = reading.ask("readInsights", view="summary", **wanted)
    if at.as_json:
        write_json(answer)
        return
    out = Console()
    for figures in answer.pipelines:
        out.print(_figures_table(figures), "")
    if not answer.pipelines:
        out.print("No runs started in that time; `--since 30d` looks further back.")
    if answer.partial_runs:
        out.print(
            f"partial: {counted(answer.partial_runs, 'run')} without a complete summary; their "
            "phases are those of their first calls.",
            style="yellow",
        )


def compare(
    a: str,
    b: str,
    /,
    *,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> None:
    """Compare two runs phase by phase: each cell says what A has, what B has, and the change.

    Parameters
    ----------
    a
        The run to compare with.
    b
        The run that is compared.
    """
    with at.reading(connect) as reading:
        answer: shapes.Comparison = reading.ask("readInsights", view="compare", a=a, b=b)
    if at.as_json:
        write_json(answer)
        return
    out = Console()
    for name, compared in (("A", answer.a), ("B", answer.b)):
        run, totals = compared.run, compared.totals
        line = Text.assemble(f"{name}  {run.run_id} ", said(run.pipeline), " ", status(run.status))
        line.append(f" {counted(totals.agents_total, 'call')}, {cost_in_words(totals)}")
        if compared.partial:
            line.append(" partial: no complete summary", "yellow")
        out.print(line, soft_wrap=True)
    out.print("", _comparison_table(answer))


def _figures_table(figures: shapes.PipelineFigures) -> Table:
    statuses = ", ".join(f"{number:,} {name}" for name, number in figures.by_status.items())
    partial = (f" {figures.partial_runs:,} partial" if figures.partial_runs else "", "yellow")
    head = f"  {counted(figures.runs, 'run')}: {statuses}"
    table = plain_table(Text.assemble(said(figures.pipeline, "bold"), head, partial))
    table.add_column("phase", overflow="fold", min_width=8)
    for name in ("runs", "calls", "failed", "cost $", "unknown", "p50 ms", "p95 ms", "max ms"):
        table.add_column(name, justify="right", overflow="fold", no_wrap=name != "cost $")
    for phase in figures.phases:
        table.add_row(said(phase.phase), *_cells_of(phase))
    table.add_row("all", *_cells_of(figures), style="bold")
    return table


def _cells_of(figures: shapes.Figures) -> Iterable[str]:
    return (
        f"{figures.runs:,}",
        f"{figures.calls:,}",
        blank_if_none(figures.failed),
        known_cost(figures.cost_usd, figures.cost_unknown, figures.calls),
        blank_if_none(figures.cost_unknown),
        *(milliseconds(ms) for ms in (figures.p50_ms, figures.p95_ms, figures.max_ms)),
    )


def _comparison_table(answer: shapes.Comparison) -> Table:
    table = Table()
    table.add_column("phase", overflow="fold", min_width=8)
    for name in ("calls", "failed", "cost $", "p50 ms", "p95 ms"):
        table.add_column(name, justify="right", overflow="fold")
    for phase in answer.phases:
        only = "" if phase.a and phase.b else " (only A)" if phase.a else " (only B)"
        table.add_row(Text.assemble(said(phase.phase), (only, "dim")), *_cells_compared(phase))
    table.add_section()
    every = shapes.ComparedPhase("all", _whole(answer.a), _whole(answer.b), answer.change)
    table.add_row("all", *_cells_compared(every))
    return table


def _whole(compared: shapes.ComparedRun) -> shapes.Phase:
    """A run's totals as if they were those of one phase."""
    sums = compared.totals
    return shapes.Phase(
        phase="all",
        calls=sums.agents_total,
        failed=sums.failed_total,
        cost_usd=sums.cost_usd_total,
        cost_unknown=sums.cost_unknown_total,
    )


def _cells_compared(phase: shapes.ComparedPhase) -> Iterable[Text]:
    for name in _COMPARED:
        known = (_value_of(name, one) for one in (phase.a, phase.b) if one is not None)
        values = " → ".join(filter(None, known))
        change = _change(name, None if phase.change is None else getattr(phase.change, name))
        yield Text.assemble(values, " " if change.plain else "", change)


def _value_of(name: str, phase: shapes.Phase) -> str:
    if name == "cost_usd":
        return known_cost(phase.cost_usd, phase.cost_unknown, phase.calls) or "?"
    value = getattr(phase, name)
    return f"{value:,}" if isinstance(value, int) else milliseconds(value)


def _change(name: str, per_cent: float | None) -> Text:
    """Green is better and red is worse, where one of them can be told."""
    if not per_cent:
        return Text("")
    colour = ""
    if name in _LESS_IS_BETTER:
        colour = "red" if per_cent > 0 else "green"
    return Text(f"{per_cent:+,.1f}%", colour)
