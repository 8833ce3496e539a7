"""Deleting a run, and the receipt of it."""

from collections.abc import Callable
from dataclasses import dataclass

from functions.api import shapes
from functions.core import deletions, times
from functions.core.deletions import Deletion, Erasures, Tombstones
from functions.core.errors import NotFound
from functions.core.keys import RunRef


@dataclass(frozen=True, slots=True)
class DeleteRun:
    tombstones: Tombstones
    erasures: Erasures
    now_ns: Callable[[], int]
    retention_days: int

    def __call__(self, ref: RunRef) -> shapes.Deletion:
        """Delete the run; its receipt, also when that was done before. Raises NotFound."""
        deletion = deletions.begin(
            ref,
            now_ns=self.now_ns(),
            retention_days=self.retention_days,
            tombstones=self.tombstones,
            erasures=self.erasures,
        )
        return shown(deletion)


@dataclass(frozen=True, slots=True)
class ReadDeletion:
    tombstones: Tombstones
    now_ns: Callable[[], int]

    def __call__(self, ref: RunRef) -> shapes.Deletion:
        """Raises NotFound for a run that was never deleted, or so long ago that nothing can come of
        it any more."""
        deletion = self.tombstones.load_deletion(ref)
        if deletion is None or deletion.is_gone(self.now_ns()):
            raise NotFound("no such run was deleted")
        return shown(deletion)


def shown(deletion: Deletion) -> shapes.Deletion:
    finished, locked = deletion.finished_at, deletion.locked_until
    return shapes.Deletion(
        run_id=deletion.ref.run_id,
        status="running" if finished is None else "finished",
        requested_at=times.text_of(deletion.requested_at),
        finished_at=None if finished is None else times.text_of(finished),
        items=deletion.items,
        objects=deletion.objects,
        versions=deletion.versions,
        looks=deletion.looks,
        locked_until=None if locked is None else times.text_of(locked),
    )
