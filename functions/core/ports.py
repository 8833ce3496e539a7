"""What the use cases need from the outside. docs/access-patterns.md describes each method's
request.

Every method may raise Unavailable: nothing is settled then, and the caller may repeat. None of them
changes anything when it is repeated with the same arguments.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from functions.core.errors import Unavailable
from functions.core.keys import Pointer, RunRef
from functions.core.model import (
    End,
    LiveTotals,
    Outcome,
    Preview,
    Run,
    Stale,
    Start,
    StepRow,
    Summary,
    Totals,
)
from functions.core.run_events import RunEvent
from runtally.wire import RunEnded, RunLog, Step


class Runs(Protocol):
    def load_run(self, ref: RunRef) -> Run | None:
        """The run as it is now (strongly consistent), or None."""


@dataclass(frozen=True, slots=True)
class Recorded[E]:
    """An event together with what its line is worth remembering by."""

    event: E
    digest: str
    pointer: Pointer
    stored_at: int


class RunStore(Runs, Protocol):
    """What ingest writes: RUN, AGENT, LOG, RESULT."""

    def is_tenant_deleted(self, tenant_id: str) -> bool:
        """Whether the tenant's tombstone stands (strongly consistent)."""

    def open_run(self, run: Run) -> Run | None:
        """Store the run unless there is one; returns the one that was there first, or None."""

    def append_steps(self, run: Run, steps: Sequence[Recorded[Step]]) -> list[Outcome]:
        """Store each step unless its id is taken, one conditional write each, in no set order."""

    def append_log(self, run: Run, log: Recorded[RunLog]) -> Outcome:
        """Store lines of log unless their id is taken."""

    def put_result(self, run: Run, end: Recorded[RunEnded]) -> None:
        """Keep the result of the end that orders first."""

    def replace_start(self, run: Run, start: Start) -> None:
        """Let a start that orders before the present one take its place; an implicit one yields to
        any."""

    def end_run(self, run: Run, end: End) -> None:
        """Let an end that orders before the present one, or the first, take its place."""

    def extend_retention(self, run: Run) -> None:
        """Keep the run at least until `run.expires_at`."""

    def resume(self, run: Run, since: int) -> None:
        """Let a stale run be running again, whose newest event makes it stale at `since` only."""

    def move_mark(self, run: Run, since: int) -> None:
        """Let a run that stays stale be so since then, and no longer since before."""


class TotalsStore(Runs, Protocol):
    """What summarize writes: TOTALS, PREVIEW, SUMMARY."""

    def add_to_totals(
        self, run: Run, bucket: int, sums: Totals, first: bytes, last: bytes
    ) -> tuple[bool, LiveTotals]:
        """Add sums over stream records `first`..`last` unless the bucket's mark is at `first` or
        past it.

        Returns whether it was added, and the item: as it is after adding, or as it stands when
        refused.
        """

    def extend_preview(
        self, run: Run, bucket: int, steps: Sequence[StepRow], first: bytes, last: bytes
    ) -> tuple[bool, Preview]:
        """Append entries under the same rule, and only if all of them still fit."""

    def mark_preview_full(self, run: Run) -> None:
        """Say on TOTALS, once and for all, that no preview write is needed any more."""

    def mark_ended(self, run: Run) -> LiveTotals:
        """Say on TOTALS that the run has ended: from now on each step asks for a recount."""

    def read_totals(self, run: Run) -> LiveTotals:
        """TOTALS as they are now (strongly consistent)."""

    def steps_of_run(self, run: Run) -> Iterable[StepRow]:
        """Every step of the run (strongly consistent), bucket after bucket, each in step order."""

    def covered_total(self, run: Run) -> int | None:
        """The `at_total` of the run's SUMMARY (strongly consistent), or None without one."""

    def put_summary(self, run: Run, summary: Summary) -> bool:
        """Replace SUMMARY unless it covers more; returns whether this one stands now."""


class ObjectStore(Protocol):
    def put_object(self, key: str, content: bytes, buckets: int) -> None:
        """Store bytes under a name that only these bytes may have."""

    def get_claimed(self, key: str, size: int) -> bytes:
        """What a claim points at. Raises Rejected when it is missing or not of that size."""


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    field: str
    detail: str


class DeadLetters(Protocol):
    def put_dead_letter(self, body: str, refusals: Sequence[Refusal]) -> None:
        """Keep a message that can never be accepted whole, unchanged, with what was refused and
        why."""


class RecountQueue(Protocol):
    def request_recount(
        self, ref: RunRef, agents_total: int | None, *, announce: bool = False
    ) -> None:
        """Ask for a recount in a few seconds; `agents_total` as TOTALS showed it, if known.

        `announce`: the end of the run is to be published when it is done. Such a request gives no
        `agents_total`, so that it is never skipped.
        """


class EventBus(Protocol):
    def publish(self, events: Sequence[RunEvent]) -> list[RunEvent]:
        """Tell other programs; returns the events that were not taken, for whatever reason.

        Never raises Unavailable: whether anybody can be told must not decide whether a run is
        counted.
        """


class Place(NamedTuple):
    """How far a tour of the open runs came: behind `after`, or at the beginning, of a shard.

    Of tours that take several sweeps also when this one began, and the last one; 0 for none.
    """

    shard: int = 0
    after: RunRef | None = None
    began_at: int = 0
    last_at: int = 0


class OpenRuns(Runs, Protocol):
    """What the sweep reads, and the marks on RUN and the place that it writes."""

    def page_of_open_runs(self, place: Place, limit: int) -> tuple[list[RunRef], Place]:
        """Runs without an end, as the index has them, which lags behind; and where to go on: at the
        next shard, when it was the last page of this one. A page may be empty."""

    def load_runs(self, refs: Sequence[RunRef]) -> dict[RunRef, Run | Unavailable]:
        """Those of the runs that there are, or why one cannot be read; they may lag by a moment."""

    def newest_event_at(self, run: Run) -> int:
        """When the newest step ended, or the newest log was written: the latest time of those with
        the highest ids, or of the run's start."""

    def read_totals(self, run: Run) -> LiveTotals:
        """TOTALS as they are now (strongly consistent)."""

    def mark_stale(self, run: Run, stale: Stale) -> bool:
        """Let RUN have this mark instead of `run.stale`; returns whether it has it now.

        Not if it has ended, is deleted, or has another mark meanwhile.
        """

    def take_mark_off(self, run: Run) -> bool:
        """Let a run that goes on be running again, under the same conditions."""

    def load_place(self) -> Place:
        """Where the last sweep stopped; the beginning if it came to the end of a tour."""

    def save_place(self, place: Place) -> None:
        """Note where the next sweep goes on."""


class UnfinishedDeletion(NamedTuple):
    ref: RunRef
    requested_at: int


class UnfinishedDeletions(Protocol):
    def unfinished_before(self, shard: int, until: int) -> Iterator[UnfinishedDeletion]:
        """Of deleted runs something may be left: those whose deletion was asked for before then,
        the oldest first; as the index has them, which lags behind."""
