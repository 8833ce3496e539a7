"""Deletions that nobody has to ask for: runs past their tenant's retention, and those that stopped
halfway."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from functions.core import deletions, keys
from functions.core.api_ports import RunQuery, RunReader, Tenants
from functions.core.deletions import Erasures, Tombstones
from functions.core.errors import NotFound, Unavailable
from functions.core.keys import RunRef
from functions.core.model import Run, RunStatus
from functions.core.ports import OpenRuns, UnfinishedDeletion, UnfinishedDeletions
from functions.core.retention import DAY_S
from functions.core.times import SECOND
from functions.core.turns import has_turn

OVERDUE_NS: Final = 3_600 * SECOND
"""After so long a deletion is taken for one that stopped, and asked for again. A healthy one takes
half an hour, most of it waiting for its second look."""
RUNS_AT_ONCE: Final = 100


@dataclass(slots=True)
class Deleted:
    """`overdue` were found, whether it was their turn to be asked for again or not. `finished`: it
    came to the end of tenants and deletions."""

    begun: int = 0
    overdue: int = 0
    finished: bool = False
    failed: list[tuple[RunRef | None, Unavailable]] = field(default_factory=list)
    """With the run that it is about, if it is about one."""

    @contextmanager
    def attempt(self, ref: RunRef | None = None) -> Iterator[None]:
        """What one tenant or run meets costs the others nothing: the next sweep repeats it."""
        try:
            yield
        except Unavailable as failure:
            self.failed.append((ref, failure))


@dataclass(frozen=True, slots=True)
class Deleting:
    tenants: Tenants
    reader: RunReader
    runs: OpenRuns
    unfinished: UnfinishedDeletions
    tombstones: Tombstones
    erasures: Erasures
    now_ns: Callable[[], int]
    retention_days: int
    every_s: int

    def __call__(self, late: Callable[[], bool], deleted: Deleted) -> None:
        """Begin what is due, then ask again for what is overdue, until it is `late`.

        What is begun leaves the lists, so that the next sweep goes on where this one stopped.
        """
        in_time = True
        with deleted.attempt():
            in_time = self._begin_due(late, deleted)
        deleted.finished = in_time and self._ask_again(late, deleted)

    def _begin_due(self, late: Callable[[], bool], deleted: Deleted) -> bool:
        """Whether there was time for all tenants."""
        for tenant in self.tenants.each_tenant():
            if late():
                return False
            if isinstance(tenant, Unavailable):
                deleted.failed.append((None, tenant))
            elif tenant.retention_days is not None:
                until = self.now_ns() - tenant.retention_days * DAY_S * SECOND
                query = RunQuery(tenant.tenant_id, 0, until)
                with deleted.attempt():
                    if not self._begin_runs(query, late, deleted):
                        return False
        return True

    def _begin_runs(self, query: RunQuery, late: Callable[[], bool], deleted: Deleted) -> bool:
        """Whether there was time for all of the query's runs: they are listed by their start, and
        stay until they have been at rest for as long."""
        after: tuple[int, str] | None = None
        while True:
            page = self.reader.page_of_runs(query, after, RUNS_AT_ONCE)
            silent = [run.ref for run in page.runs if run.status != RunStatus.RUNNING]
            for ref, run in self.runs.load_runs(silent).items():
                if late():
                    return False
                with deleted.attempt(ref):
                    deleted.begun += self._begin_one(ref, run, query.until)
            if page.last is None:
                return True
            after = page.last

    def _begin_one(self, ref: RunRef, run: Run | Unavailable, until: int) -> bool:
        """Whether it was due. Raises what `run` is, if that cannot be read."""
        if isinstance(run, Unavailable):
            raise run
        if not _is_at_rest(run, until):  # a write that is refused would cost as much as one
            return False
        try:
            deletions.begin(
                ref,
                now_ns=self.now_ns(),
                retention_days=self.retention_days,
                tombstones=self.tombstones,
                erasures=self.erasures,
                at_rest_before=until,
            )
        except NotFound:
            return False  # not for so long, or gone already: the index lags behind, as TTL does
        return True

    def _ask_again(self, late: Callable[[], bool], deleted: Deleted) -> bool:
        """Whether there was time for all shards; each deletion has its turn once an hour."""
        for shard in range(keys.OPEN_RUN_SHARDS):
            overdue_since = self.now_ns() - OVERDUE_NS
            with deleted.attempt():
                for one in self.unfinished.unfinished_before(shard, overdue_since):
                    if late():
                        return False
                    deleted.overdue += 1
                    with deleted.attempt(one.ref):
                        self._ask_for(one, overdue_since)
        return True

    def _ask_for(self, deletion: UnfinishedDeletion, overdue_since: int) -> None:
        if has_turn(overdue_since - deletion.requested_at, self.every_s * SECOND):
            self.erasures.request_erasure(deletion.ref)


def _is_at_rest(run: Run, before: int) -> bool:
    """As what is read here may lag, the tombstone's own condition has the last word."""
    if run.end:
        return run.end.order.at < before
    return run.stale is not None and run.stale.since < before
