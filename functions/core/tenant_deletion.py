"""Deletion of a tenant: a tombstone in its place, then its API keys and runs; once the runs are
erased, its invocations and all objects.

The tombstone keeps messages that are still under way from bringing it back: ingest opens no run
where it stands. An account's own rights do all this, not a key of the tenant. Every step may be
repeated, and each looks for itself at what is left: so the whole is resumed by doing it again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from functions.core import deletions, keys
from functions.core.deletions import Erasures, Tombstones
from functions.core.errors import NotFound
from functions.core.ids import check_tenant_id
from functions.core.keys import RunRef

SEGMENTS: Final = 8
"""Into which the table is cut to look for invocations."""
LOOKS: Final = 2
"""The second finds what an index showed late, and what somebody was still writing at the first."""


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

    def bury_tenant(self, tenant_id: str, deleted_at: int, expires_at: int) -> None:
        """Put a tombstone in the tenant's place, whether it is there or not; it says nothing of the
        tenant but since when it is deleted."""


class Objects(Protocol):
    def take_below(self, prefix: str) -> Iterator[tuple[int, int]]:
        """Delete all versions of all objects whose key begins so, a bounded part at a time; counts
        names and versions of each part."""


@dataclass(slots=True)
class TenantErasure:
    """What one call did. `unfinished` runs are still being erased; once there is none, and nothing
    else is left either, the tenant is gone: `finished`.

    `existed`: there was anything of it. `objects` and `versions` are those that no run told of.
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


@dataclass(frozen=True, slots=True)
class DeleteTenant:
    data: TenantData
    objects: Objects
    tombstones: Tombstones
    erasures: Erasures
    now_ns: Callable[[], int]
    retention_days: int
    spread: Callable[[Callable[[int], int], Iterable[int]], Iterable[int]] = map

    def __call__(
        self, tenant_id: str, told: Callable[[TenantErasure], None] = lambda _: None
    ) -> TenantErasure:
        """Delete what can be deleted now; `told` hears how far it is. Whoever wants it finished
        calls again once nothing is unfinished.

        A tenant of which there is nothing gets no tombstone. Raises Rejected for what can be no
        tenant's id, and Unavailable.
        """
        check_tenant_id(tenant_id)
        erasure = TenantErasure(tenant_id, existed=self.data.has_tenant(tenant_id))
        self._bury(erasure)
        erasure.keys = self.data.delete_keys(tenant_id)
        self._begin_runs(erasure, told)
        erasure.unfinished = self.unfinished(tenant_id)
        if not erasure.runs and not erasure.unfinished:
            self._finish(erasure, told)
        found = (erasure.keys, erasure.runs, erasure.unfinished, erasure.invocations)
        if not erasure.existed and any((*found, erasure.versions)):
            erasure.existed = True
            self._bury(erasure)
        return erasure

    def unfinished(self, tenant_id: str) -> int:
        """How many of the tenant's runs are still being erased: far cheaper than a call."""
        return self.data.unfinished_deletions(tenant_id)

    def _bury(self, erasure: TenantErasure) -> None:
        if erasure.existed:
            now_ns = self.now_ns()
            expires_at = deletions.kept_until(now_ns, self.retention_days)
            self.data.bury_tenant(erasure.tenant_id, now_ns, expires_at)

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

    def _finish(self, erasure: TenantErasure, told: Callable[[TenantErasure], None]) -> None:
        """What belonged to no run, and what outlived its items."""
        tenant_id = erasure.tenant_id
        for _ in range(LOOKS):
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
            erasure.keys += self.data.delete_keys(tenant_id)
        erasure.finished = True
