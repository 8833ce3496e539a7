"""What the functions speak about: a run, its start and end, a step as counting sees it, totals, a
summary.

Times are integer nanoseconds since the epoch, money is Decimal and exact, sizes are bytes of UTF-8.
"""

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct

from functions.core.keys import RunRef

EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])
"""Adds money without rounding: Python's own default keeps 28 digits, a run's sum may need 38."""


def sum_exactly(amounts: Iterable[Decimal | None]) -> Decimal:
    """The sum of those that are known, without trailing zeros."""
    total = Decimal(0)
    for amount in amounts:
        if amount is not None:
            total = EXACT.add(total, amount)
    return EXACT.normalize(total)


class RunStatus(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALE = "stale"


class Outcome(StrEnum):
    """What became of a write that only the first sender of an id may do."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    LATE = "late"
    """An answer to an invocation that had failed before it came."""


class Order(NamedTuple):
    """What decides between two starts, ends or results of one run: the smaller, whenever it
    arrives."""

    at: int
    digest: str


@dataclass(frozen=True, slots=True)
class Start:
    """How a run began. An implicit one stands in until `run.started` arrives."""

    order: Order
    pipeline: str = ""
    session_id: str | None = None
    attributes: str | None = None
    stale_after_s: int | None = None
    implicit: bool = False

    def yields_to(self, other: Self) -> bool:
        if self.implicit != other.implicit:
            return self.implicit
        return other.order < self.order


@dataclass(frozen=True, slots=True)
class End:
    order: Order
    status: RunStatus
    error: str | None = None

    def yields_to(self, other: Self) -> bool:
        return other.order < self.order


@dataclass(frozen=True, slots=True)
class Stale:
    """That an open run has been silent for longer than it may.

    `since` is its newest event's time plus its deadline. `counted` is `agents_total` as TOTALS
    showed it when a recount was asked for last. `untold`: nobody could be told of it yet.
    """

    since: int
    counted: int
    untold: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    ref: RunRef
    buckets: int
    start: Start
    expires_at: int
    end: End | None = None
    deleted: bool = False
    stale: Stale | None = None

    @property
    def status(self) -> RunStatus:
        if self.end:
            return self.end.status
        return RunStatus.STALE if self.stale else RunStatus.RUNNING


class StepRow(Struct, frozen=True, gc=False):
    """A recorded step as far as counting needs it.

    All times are the sender's, but `stored_at`, which is ours. A Struct, because a recount makes a
    hundred thousand: a third of a dataclass's time, and nothing for the collector to look into.
    """

    step_id: str
    kind: str
    status: str
    started_at: int
    ended_at: int
    name: str = ""
    phase: str = ""
    phase_hint: str = ""
    agent: str = ""
    model: str = ""
    parent_id: str | None = None
    cost: Decimal | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    stored_at: int = 0

    @property
    def duration_ns(self) -> int:
        """Never negative: a clock that was set back meanwhile says nothing about time."""
        return max(0, self.ended_at - self.started_at)


@dataclass(frozen=True, slots=True)
class Totals:
    """Exact sums over steps. The field names are the attribute names in the table."""

    agents_total: int = 0
    failed_total: int = 0
    cancelled_total: int = 0
    cost_usd_total: Decimal = Decimal(0)
    cost_unknown_total: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @classmethod
    def of(cls, steps: Sequence[StepRow]) -> Self:
        return cls(
            agents_total=len(steps),
            failed_total=sum(step.status == "failed" for step in steps),
            cancelled_total=sum(step.status == "cancelled" for step in steps),
            cost_usd_total=sum_exactly(step.cost for step in steps),
            cost_unknown_total=sum(step.cost is None for step in steps),
            input_tokens=sum(step.input_tokens for step in steps),
            output_tokens=sum(step.output_tokens for step in steps),
            cached_tokens=sum(step.cached_tokens for step in steps),
            cache_write_tokens=sum(step.cache_write_tokens for step in steps),
            reasoning_tokens=sum(step.reasoning_tokens for step in steps),
        )

    def as_attributes(self) -> dict[str, int | Decimal]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class LiveTotals:
    """The TOTALS item: sums so far, and how far the stream has been counted, bucket by bucket."""

    totals: Totals = field(default_factory=Totals)
    marks: Mapping[int, bytes] = field(default_factory=dict)
    ended: bool = False
    preview_full: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """The PREVIEW item as far as extending it needs it."""

    length: int = 0
    marks: Mapping[int, bytes] = field(default_factory=dict)


class PreviewEntry(NamedTuple):
    """A call as the preview shows it: names short, times in whole milliseconds."""

    step_id: str
    status: str
    kind: str
    milliseconds: int
    cost: Decimal | None
    phase: str
    name: str


@dataclass(frozen=True, slots=True)
class Spread:
    """How long steps took, in milliseconds: nearest ranks over every one of them."""

    p50_ms: Decimal
    p95_ms: Decimal
    max_ms: Decimal


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """One phase over every call in it. `calls` and sums are exact; names are cut and capped."""

    phase: str
    calls: int
    failed: int
    cost_usd: Decimal
    cost_unknown: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    first_start: int
    last_end: int
    wall_ms: Decimal
    busy_ms: Decimal
    p50_ms: Decimal
    p95_ms: Decimal
    max_ms: Decimal
    agents: tuple[str, ...]
    models: tuple[str, ...]
    rolled_up: int = 0
    """How many phases this entry stands for beyond the cap; 0 for a phase of its own."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The truth about a run at one moment: every step item read, nothing estimated."""

    totals: Totals
    phases: tuple[PhaseSummary, ...]
    at_total: int
    fold_version: int
    spread: Spread | None = None
    """None without any step, and in summaries of the first fold."""
