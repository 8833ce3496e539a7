"""Deletion of a tenant: a tombstone in its place, then its API keys and runs; once the runs are
erased, its invocations and all objects.

The tombstone keeps messages that are still under way from bringing it back: ingest opens no run
where it stands. An account's own rights do all this, not a key of the tenant. Every step may be
repeated, and each looks for itself at what is left: so the whole is resumed by doing it again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import batched
from typing import Final, Protocol

from functions.core import deletions, keys
from functions.core.deletions import Erasures, Tombstones
from functions.core.errors import NotFound
from functions.core.ids import check_tenant_id
from functions.core.keys import RunRef
from functions.core.lake_ports import Lake
from functions.core.times import SECOND

SEGMENTS: Final = 8
"""Into which the table is cut to look for invocations."""


_RUNS_AT_ONCE: Final = 1_000
"""Of which notes are deleted together."""


class TenantData(Protocol):
    """Every method may raise Unavailable; repeating it changes nothing."""

    def delete_keys(self, tenant_id: str) -> int:
        """Delete the tenant's API keys, so that none holds any longer; returns how many. One made a
        moment ago may be missed."""

    def runs_of_tenant(self, tenant_id: str) -> Iterator[RunRef]:
        """The tenant's runs as the index has them, which lags by a moment."""

    def unfinished_deletions(self, tenant_id: str) -> int:
        """How many of the tenant's runs are still being erased, as the index has it."""

    def delete_invocations(self, tenant_id: str, segment: int) -> int:
        """Delete the tenant's invocations in one of the table's segments; returns how many.

        Reads the whole segment, for no index knows them: over all segments a gigabyte of table
        costs 262,144 read units, about 3 cents, each time.
        """

    def has_tenant(self, tenant_id: str) -> bool:
        """Whether there is the tenant, or its tombstone."""

    def bury_tenant(self, tenant_id: str, deleted_at: int, expires_at: int) -> int:
        """Put a tombstone in the tenant's place, whether it is there or not; an earlier one stays.
        Returns since when the tenant is deleted, which is all that it says. Raises NewerSchema."""


class Objects(Protocol):
    def take_below(self, prefix: str) -> Iterator[tuple[int, int]]:
        """Delete all versions of all objects whose key begins so, a bounded part at a time; counts
        names and versions of each part."""


@dataclass(slots=True)
class TenantErasure:
    """What one call did. `unfinished` runs are still being erased; once there is none, and none can
    come any more, the rest goes, and the tenant is gone: `finished`.

    `existed`: there was anything of it. `objects` and `versions` are those that no run told of.
    Until `locked_until`, in nanoseconds, files of the lake stay that a lock holds, hidden.
    """

    tenant_id: str
    keys: int = 0
    runs: int = 0
    invocations: int = 0
    objects: int = 0
    versions: int = 0
    unfinished: int = 0
    existed: bool = False
    finished: bool = False
    locked_until: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteTenant:
    """`quiet_s` is longer than any writer's invocation, and than an index lags: one that had read
    the tenant before its tombstone was put may open a run until then. Only a call that began after
    it, and found neither run nor key, can be the last."""

    data: TenantData
    objects: Objects
    tombstones: Tombstones
    erasures: Erasures
    now_ns: Callable[[], int]
    retention_days: int
    quiet_s: int
    spread: Callable[[Callable[[int], int], Iterable[int]], Iterable[int]] = map
    lake: Lake | None = None

    def __call__(
        self, tenant_id: str, told: Callable[[TenantErasure], None] = lambda _: None
    ) -> TenantErasure:
        """Delete what can be deleted now; `told` hears how far it is. Whoever wants it finished
        calls again once nothing is unfinished.

        A tenant of which there is nothing gets no tombstone. Raises Rejected for what can be no
        tenant's id, and Unavailable.
        """
        check_tenant_id(tenant_id)
        began = self.now_ns()
        erasure = TenantErasure(tenant_id, existed=self.data.has_tenant(tenant_id))
        quiet = erasure.existed and began >= self._bury(tenant_id) + self.quiet_s * SECOND
        erasure.keys = self.data.delete_keys(tenant_id)
        self._begin_runs(erasure, told)
        erasure.unfinished = self.unfinished(tenant_id)
        clean = not (erasure.keys or erasure.runs or erasure.unfinished)
        if clean and (quiet or not erasure.existed):
            self._take_rest(erasure, told)
            erasure.finished = quiet
        if not erasure.existed and not (clean and erasure.invocations == erasure.versions == 0):
            erasure.existed = True
            self._bury(tenant_id)
        return erasure

    def unfinished(self, tenant_id: str) -> int:
        """How many of the tenant's runs are still being erased: far cheaper than a call."""
        return self.data.unfinished_deletions(tenant_id)

    def _bury(self, tenant_id: str) -> int:
        now_ns = self.now_ns()
        expires_at = deletions.kept_until(now_ns, self.retention_days)
        return self.data.bury_tenant(tenant_id, now_ns, expires_at)

    def _begin_runs(self, erasure: TenantErasure, told: Callable[[TenantErasure], None]) -> None:
        for ref in self.data.runs_of_tenant(erasure.tenant_id):
            try:
                deletion = deletions.begin(
                    ref,
                    now_ns=self.now_ns(),
                    retention_days=self.retention_days,
                    tombstones=self.tombstones,
                    erasures=self.erasures,
                )
            except NotFound:  # the index lags behind
                continue
            erasure.runs += deletion.finished_at is None
            told(erasure)

    def _take_rest(self, erasure: TenantErasure, told: Callable[[TenantErasure], None]) -> None:
        """What belonged to no run, and what outlived its items."""
        tenant_id = erasure.tenant_id
        segments = self.spread(
            lambda segment: self.data.delete_invocations(tenant_id, segment), range(SEGMENTS)
        )
        for invocations in segments:
            erasure.invocations += invocations
            told(erasure)
        for prefix in keys.objects_of_tenant(tenant_id):
            for names, versions in self.objects.take_below(prefix):
                erasure.objects += names
                erasure.versions += versions
                told(erasure)
        if self.lake:
            self._take_lake(self.lake, erasure, told)

    def _take_lake(
        self, lake: Lake, erasure: TenantErasure, told: Callable[[TenantErasure], None]
    ) -> None:
        """Notes first, of runs that have expired: which they are, files alone tell."""
        runs = lake.objects.runs_of_tenant(erasure.tenant_id)
        for refs in batched(runs, _RUNS_AT_ONCE, strict=False):
            lake.notes.forget(refs)
        for taken in lake.objects.take_tenant(erasure.tenant_id):
            erasure.objects += taken.names
            erasure.versions += taken.versions
            ends = (erasure.locked_until, taken.locked_until)
            erasure.locked_until = max((end for end in ends if end), default=None)
            told(erasure)
