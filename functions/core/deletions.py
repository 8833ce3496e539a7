"""Deletion of a run: a tombstone in place of RUN first, everything else after it.

The tombstone is what keeps the run deleted: ingest, summarize and recount read RUN before they
write, and write nothing where it stands. It is kept as long as an event of the run could still be
accepted, and holds the receipt. `functions/erase` does the work behind it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from functions.core import keys
from functions.core.errors import NotFound
from functions.core.ids import check_run
from functions.core.items import DELETED, Item, present
from functions.core.keys import RunRef
from functions.core.retention import DAY_S
from functions.core.schema import refuse_newer
from functions.core.times import SECOND

TOMBSTONE_MARGIN_DAYS: Final = 30
"""Beyond retention. A worker that still records the run makes events that are as new as it: those
of the days after the deletion are accepted for one retention longer than older ones."""
TOMBSTONE_DAYS: Final = 730
"""At least: so much may a stage's retention be raised later, and no tombstone is too short."""

RECEIPT: Final = "deletion"


@dataclass(frozen=True, slots=True)
class Deletion:
    """How far a deletion has come: the receipt. Times are nanoseconds.

    `items`, `objects` (names) and `versions` (of objects, delete markers included) count what is
    gone. They are never too high; too low, at most, by what was under way when a function was
    killed, or two of them met. `looks` is how often everything was looked through to the end.
    `since` is when that began, by the clock of the one who looks; `turn` counts the writes of this
    receipt. `expires_at` is in seconds. Until `locked_until` versions of the lake's files stay,
    which a lock holds and no reader finds.
    """

    ref: RunRef
    requested_at: int
    expires_at: int
    buckets: int = 1
    items: int = 0
    objects: int = 0
    versions: int = 0
    looks: int = 0
    turn: int = 0
    since: int | None = None
    finished_at: int | None = None
    locked_until: int | None = None

    def is_gone(self, now_ns: int) -> bool:
        """By the clock: TTL takes days to remove what has expired."""
        return now_ns >= self.expires_at * SECOND


class Tombstones(Protocol):
    """Every method may raise Unavailable; repeating it changes nothing."""

    def bury(
        self, ref: RunRef, requested_at: int, expires_at: int, at_rest_before: int | None = None
    ) -> Deletion | None:
        """Put a tombstone in the place of RUN, in one conditional write; returns the deletion that
        stands now, an earlier one where there is one, and None when there is no such run. One past
        its time that TTL left is buried, too, and one that TTL took, while the lake may have files
        of it. Raises NewerSchema.

        With `at_rest_before`, None also for a run that is there, and neither ended nor went stale
        before then.
        """

    def load_deletion(self, ref: RunRef) -> Deletion | None:
        """The receipt as it is now (strongly consistent); None without a tombstone."""

    def is_gone_with_tenant(self, ref: RunRef) -> bool:
        """Whether there is neither run nor tombstone, and never will be: its tenant is deleted
        (strongly consistent)."""

    def note(self, before: Deletion, after: Deletion) -> bool:
        """Replace the receipt `before` by `after`; returns whether that one stands now, and not
        one that somebody else wrote meanwhile."""


class ItemsOfRun(Protocol):
    def take_items(self, deletion: Deletion) -> Iterator[int]:
        """Delete all items of the run but its tombstone, and the one that says where the lake's
        files are, a bounded part at a time; counts those of each part. Raises Unavailable once what
        was done is counted."""


class ObjectsOfRun(Protocol):
    def take_objects(self, ref: RunRef) -> Iterator[tuple[int, int]]:
        """Delete all versions of the run's objects and of its messages in the inbox, a bounded
        part at a time; counts names and versions of each. Raises Unavailable likewise."""


class Erasures(Protocol):
    def request_erasure(self, ref: RunRef, delay_s: int = 0) -> None:
        """Ask for the work behind a tombstone, in so many seconds, 900 at most."""


def begin(  # noqa: PLR0913 - each by its name
    ref: RunRef,
    *,
    now_ns: int,
    retention_days: int,
    tombstones: Tombstones,
    erasures: Erasures,
    at_rest_before: int | None = None,
) -> Deletion:
    """Delete a run, as good as at once: from here on it is gone for every reader and writer.

    Repeating it changes nothing, and asks for the work again while that is not finished: so it
    also mends a crash between the two. Raises Rejected for what can be no run, NotFound for one
    that is unknown or did not end or go stale before `at_rest_before`, and Unavailable.
    """
    check_run(ref)
    expires_at = kept_until(now_ns, retention_days)
    deletion = tombstones.bury(ref, now_ns, expires_at, at_rest_before)
    if deletion is None or deletion.is_gone(now_ns):
        raise NotFound("there is no such run")
    if deletion.finished_at is None:
        erasures.request_erasure(ref)
    return deletion


def kept_until(now_ns: int, retention_days: int) -> int:
    """When a tombstone that is put now expires, in seconds."""
    days = max(retention_days + TOMBSTONE_MARGIN_DAYS, TOMBSTONE_DAYS)
    return now_ns // SECOND + days * DAY_S


def receipt_map(deletion: Deletion) -> Item:
    """The receipt as it stands on the tombstone: one map, replaced whole."""
    return present(
        items=deletion.items,
        objects=deletion.objects,
        versions=deletion.versions,
        looks=deletion.looks,
        turn=deletion.turn,
        since=deletion.since,
        finished_at=deletion.finished_at,
        locked_until=deletion.locked_until,
    )


def parse_deletion(item: Mapping[str, Any]) -> Deletion | None:
    """The deletion that a RUN item tells of; None when it is no tombstone. Raises NewerSchema."""
    refuse_newer(item)
    if DELETED not in item:
        return None
    ref, _ = keys.parse_run_partition(item[keys.PARTITION])
    return Deletion(
        ref=ref,
        requested_at=int(item[DELETED]),
        expires_at=int(item[keys.EXPIRES]),
        buckets=int(item.get("buckets", 1)),
        **{name: int(value) for name, value in item.get(RECEIPT, {}).items()},
    )
