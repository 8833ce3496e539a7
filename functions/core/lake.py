"""The three tables of the lake, and the rows that a run has in each.

A run's rows all come from one look at its steps: calls, phases and sums fit together to the last
digit, and equal SUMMARY once the run is at rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from functions.core import items, keys, times
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.model import Run, StepRow, Summary
from functions.core.phases import phases_of, summarize_steps

Kind = Literal["VARCHAR", "BIGINT", "DECIMAL(38,18)", "DOUBLE", "TIMESTAMP", "VARCHAR[]"]
"""As DuckDB spells it. TIMESTAMP is in microseconds, UTC; to the nanosecond stand the `_ns`."""

type Row = dict[str, object]


type Rows = tuple[Table, Iterator[Row]]
"""Those of one table."""


class NotEnded(ValueError):  # noqa: N818 - the fact
    """An open run has no rows: what it comes to is not known yet."""


class Incomplete(ValueError):  # noqa: N818 - the fact
    """Calls that the run is known to have had are not there (any more): it would not be whole."""


class Column(NamedTuple):
    name: str
    kind: Kind
    about: str


@dataclass(frozen=True, slots=True)
class Table:
    """`partitioned by tenant_id, day`: both are columns, too, so that a file alone is whole."""

    name: str
    columns: tuple[Column, ...]


_RUN: Final = (
    Column("tenant_id", "VARCHAR", "whose run it is"),
    Column("day", "VARCHAR", "the day on which the run began, UTC: 2026-11-30"),
    Column("run_id", "VARCHAR", "unique within the tenant"),
    Column("pipeline", "VARCHAR", "what the run is a run of"),
)
_TIMES: Final = (
    Column("started_at", "TIMESTAMP", ""),
    Column("ended_at", "TIMESTAMP", ""),
    Column("started_ns", "BIGINT", "nanoseconds since 1970"),
    Column("ended_ns", "BIGINT", ""),
)
_TOKENS: Final = (
    Column("input_tokens", "BIGINT", ""),
    Column("output_tokens", "BIGINT", ""),
    Column("cached_tokens", "BIGINT", "of the input, read from a cache"),
    Column("cache_write_tokens", "BIGINT", "of the input, written to a cache"),
    Column("reasoning_tokens", "BIGINT", "of the output"),
)

RUNS: Final = Table(
    "runs",
    (
        *_RUN,
        Column("status", "VARCHAR", "succeeded, failed, cancelled"),
        *_TIMES,
        Column("session_id", "VARCHAR", ""),
        Column("attributes", "VARCHAR", "JSON"),
        Column("error", "VARCHAR", ""),
        Column("agents_total", "BIGINT", "calls of all kinds"),
        Column("failed_total", "BIGINT", ""),
        Column("cancelled_total", "BIGINT", ""),
        Column("cost_usd_total", "DECIMAL(38,18)", "the sum over calls whose cost is known"),
        Column("cost_unknown_total", "BIGINT", "calls whose cost is not known"),
        *_TOKENS,
    ),
)
CALLS: Final = Table(
    "calls",
    (
        *_RUN,
        Column("step_id", "VARCHAR", "sorts by time"),
        Column("parent_id", "VARCHAR", "a step id, or the last 11 characters of one"),
        Column("kind", "VARCHAR", "agent, model, tool"),
        Column("status", "VARCHAR", "succeeded, failed, cancelled"),
        Column(
            "phase",
            "VARCHAR",
            "under which it counts in the table of phases, unless that rolls it up",
        ),
        Column("name", "VARCHAR", ""),
        Column("agent", "VARCHAR", ""),
        Column("model", "VARCHAR", ""),
        Column("provider", "VARCHAR", ""),
        Column("session_id", "VARCHAR", ""),
        *_TIMES,
        Column("duration_ms", "DOUBLE", "never negative"),
        Column("cost_usd", "DECIMAL(38,18)", "as sent, else by list prices; NULL: not known"),
        Column("price_table", "VARCHAR", "by whose list prices, where nobody sent the cost"),
        *_TOKENS,
        Column("error", "VARCHAR", ""),
        Column("attributes", "VARCHAR", "JSON"),
        Column("payload_bytes", "BIGINT", "of its payload, which stays where it is"),
    ),
)
PHASES: Final = Table(
    "phases",
    (
        *_RUN,
        Column("phase", "VARCHAR", ""),
        Column("calls", "BIGINT", ""),
        Column("failed", "BIGINT", ""),
        Column("cost_usd", "DECIMAL(38,18)", ""),
        Column("cost_unknown", "BIGINT", ""),
        Column("input_tokens", "BIGINT", ""),
        Column("output_tokens", "BIGINT", ""),
        Column("cached_tokens", "BIGINT", ""),
        Column("first_start", "TIMESTAMP", ""),
        Column("last_end", "TIMESTAMP", ""),
        Column("wall_ms", "DOUBLE", "in which at least one call was under way"),
        Column("busy_ms", "DOUBLE", "the sum over its calls"),
        Column("p50_ms", "DOUBLE", ""),
        Column("p95_ms", "DOUBLE", ""),
        Column("max_ms", "DOUBLE", ""),
        Column("agents", "VARCHAR[]", ""),
        Column("models", "VARCHAR[]", ""),
    ),
)
TABLES: Final = (RUNS, CALLS, PHASES)


_COLON: Final = "!"
"""In place of a `:`, which no file may have in its name for Spark and on Windows. No id has it."""


def day_of(run: Run) -> str:
    """By which the lake is partitioned: an earlier start that arrives late moves the run."""
    return day_at(run.start.order.at)


def day_at(at: int) -> str:
    return times.text_of(at)[: len("2026-11-30")]


def place_of(table: Table, ref: RunRef, day: str) -> str:
    """Where a table's rows of a run lie, below the lake; how the file ends is its format's."""
    name = ref.run_id.replace(":", _COLON)
    return f"{table.name}/tenant_id={ref.tenant_id}/day={day}/{name}"


def run_at(place: str) -> str:
    """The id of the run whose rows lie at a place."""
    return place.rpartition("/")[2].replace(_COLON, ":")


def rows_of_run(
    run: Run, steps: Sequence[StepRow], calls: Iterable[Item], at_least: int
) -> tuple[Rows, ...]:
    """A run's rows in each table, all from one fold of these steps; CALLS come first, RUNS last.

    `steps` in step order, `calls` their items, read as the rows are taken: those which came after
    the steps were read are left out. Raises NotEnded, and Incomplete for fewer steps than it is
    known to have had; so does taking the rows, when the item of a step is gone by then.
    """
    if len(steps) < at_least:
        raise Incomplete(f"{len(steps):,} of {at_least:,} calls are there")
    summary = summarize_steps(steps, at_total=len(steps))
    row = run_row(run, summary)
    return (
        (CALLS, call_rows(run, steps, calls)),
        (PHASES, phase_rows(run, summary)),
        (RUNS, iter((row,))),
    )


def run_row(run: Run, summary: Summary) -> Row:
    """Raises NotEnded."""
    if run.end is None:
        raise NotEnded(f"{run.ref.run_id} has not ended")
    return {
        **_of_run(run),
        "status": run.end.status.value,
        **_times(run.start.order.at, run.end.order.at),
        "session_id": run.start.session_id,
        "attributes": run.start.attributes,
        "error": run.end.error,
        **summary.totals.as_attributes(),
    }


def call_rows(run: Run, steps: Iterable[StepRow], calls: Iterable[Item]) -> Iterator[Row]:
    """A row for each of these steps. `calls` may bring more, which came after they were read.

    Raises Incomplete, at the end, when they bring fewer.
    """
    phases = phases_of(list(steps))
    of_run = _of_run(run)
    found = 0
    for item in calls:
        step_id = item[keys.SORT].removeprefix(keys.STEP_PREFIX)
        if step_id in phases:
            found += 1
            yield {**of_run, "step_id": step_id, "phase": phases[step_id], **_of_call(item)}
    if found < len(phases):
        raise Incomplete(f"{found:,} of {len(phases):,} calls are there")


def phase_rows(run: Run, summary: Summary) -> Iterator[Row]:
    for phase in summary.phases:
        yield {
            **_of_run(run),
            **{column.name: getattr(phase, column.name) for column in PHASES.columns[len(_RUN) :]},
        }


def _of_run(run: Run) -> Row:
    return {**run.ref._asdict(), "day": day_of(run), "pipeline": run.start.pipeline}


def _times(started: int, ended: int) -> Row:
    return {
        "started_at": started,
        "ended_at": ended,
        "started_ns": started,
        "ended_ns": ended,
    }


def _of_call(item: Mapping[str, Any]) -> Row:
    step = items.step_row(item)
    named = {
        column.name: item.get(column.name)
        for column in CALLS.columns
        if column.name not in {"step_id", "phase", *(each.name for each in _RUN)}
    }
    return {
        **named,
        **_times(step.started_at, step.ended_at),
        "duration_ms": step.duration_ns / 1_000_000,
        "cost_usd": step.cost,
        "price_table": None if "cost_usd" in item else item.get("price_table"),
        **{column.name: getattr(step, column.name) for column in _TOKENS},
    }
