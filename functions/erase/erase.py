"""Erase what a deleted run left behind: in bounded steps, again and again, until it stays gone.

Every invocation looks through everything from the start, and what is gone already costs it nothing.
So no place needs to be kept where to go on: a kill is mended by the next delivery, and the second
look is a look like the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from functions.core.deletions import Deletion, Erasures, ItemsOfRun, ObjectsOfRun, Tombstones
from functions.core.keys import RunRef
from functions.core.lake_ports import Lake
from functions.core.times import SECOND

LONGEST_DELAY_S = 900
"""Of a message, by SQS's rules; one that comes too early is sent again."""


class Erased(StrEnum):
    """What became of a request."""

    DROPPED = "dropped"
    """There is no tombstone, of the run or its tenant: nothing may be erased."""
    WAITING = "waiting"
    UNFINISHED = "unfinished"
    LOOKED = "looked"
    OVERTAKEN = "overtaken"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Erasure:
    """The receipt as this invocation leaves it, and what it added to it."""

    outcome: Erased
    items: int = 0
    objects: int = 0
    versions: int = 0


class _Part(NamedTuple):
    """What was just done."""

    items: int = 0
    objects: int = 0
    versions: int = 0
    locked_until: int | None = None


@dataclass(frozen=True, slots=True)
class Erase:
    """`quiet_s` is longer than any writer's invocation: one that had read RUN before its tombstone
    was put may write until then. Only a look that began after it can be the last."""

    tombstones: Tombstones
    items: ItemsOfRun
    objects: ObjectsOfRun
    erasures: Erasures
    now_ns: Callable[[], int]
    quiet_s: int
    lake: Lake | None = None

    def __call__(self, ref: RunRef, late: Callable[[], bool]) -> Erasure:
        """Do what can be done before it is late, and ask for the rest.

        Two invocations may meet over one run: the first to write the receipt goes on, the other
        ends. Raises Unavailable, and then wants to be called again.
        """
        deletion = self.tombstones.load_deletion(ref)
        if deletion is None:
            return self._without_tombstone(ref, late)
        began = self.now_ns()
        since = began if deletion.since is None else deletion.since
        quiet_at = since + self.quiet_s * SECOND
        if deletion.looks and deletion.finished_at is None and began < quiet_at:
            self._ask_at(ref, quiet_at)
            return Erasure(Erased.WAITING)
        before = deletion
        for part in self._parts(deletion, quiet=began >= quiet_at):
            after = _with(deletion, part)
            if after == deletion:  # what a lock holds, looked at once more
                continue
            after = replace(after, since=since, turn=deletion.turn + 1)
            if not self.tombstones.note(deletion, after):
                return _erasure(Erased.OVERTAKEN, before, deletion)
            deletion = after
            if late():
                self.erasures.request_erasure(ref)
                return _erasure(Erased.UNFINISHED, before, deletion)
        return self._looked(before, deletion, since, clean=deletion == before and began >= quiet_at)

    def _without_tombstone(self, ref: RunRef, late: Callable[[], bool]) -> Erasure:
        """Of a run that was never opened, as its tenant was deleted before, there may be a body in
        the inbox. Who writes one asks for its erasure afterwards: one look is enough."""
        if not self.tombstones.is_gone_with_tenant(ref):
            return Erasure(Erased.DROPPED)
        taken = Erasure(Erased.LOOKED)
        for objects, versions in self.objects.take_objects(ref):
            taken = replace(
                taken, objects=taken.objects + objects, versions=taken.versions + versions
            )
            if late():
                self.erasures.request_erasure(ref)
                return replace(taken, outcome=Erased.UNFINISHED)
        return taken

    def _looked(self, before: Deletion, deletion: Deletion, since: int, *, clean: bool) -> Erasure:
        """All was looked through; when nothing was left after the quiet time, that is the end."""
        if clean and before.finished_at is not None:
            return Erasure(Erased.LOOKED)
        looked = replace(deletion, looks=deletion.looks + 1, since=since, turn=deletion.turn + 1)
        if clean:
            looked = replace(looked, finished_at=self.now_ns())
        if not self.tombstones.note(deletion, looked):
            return _erasure(Erased.OVERTAKEN, before, deletion)
        if not clean:
            self._ask_at(deletion.ref, since + self.quiet_s * SECOND)
        return _erasure(Erased.FINISHED if clean else Erased.LOOKED, before, looked)

    def _parts(self, deletion: Deletion, *, quiet: bool) -> Iterator[_Part]:
        """The lake last: trouble there holds up nothing else."""
        for items in self.items.take_items(deletion):
            yield _Part(items)
        for objects, versions in self.objects.take_objects(deletion.ref):
            yield _Part(0, objects, versions)
        if self.lake:
            yield from _parts_of_lake(self.lake, deletion.ref, quiet=quiet)

    def _ask_at(self, ref: RunRef, at: int) -> None:
        seconds = -(-(at - self.now_ns()) // SECOND)
        self.erasures.request_erasure(ref, min(max(seconds, 0), LONGEST_DELAY_S))


def _parts_of_lake(lake: Lake, ref: RunRef, *, quiet: bool) -> Iterator[_Part]:
    note = lake.notes.load_note(ref)
    for taken in lake.objects.take_run(ref, note.days):
        yield _Part(0, *taken)
    if quiet and note.turn:
        lake.notes.forget([ref])
        yield _Part(items=1)


def _with(deletion: Deletion, part: _Part) -> Deletion:
    ends = (deletion.locked_until, part.locked_until)
    return replace(
        deletion,
        items=deletion.items + part.items,
        objects=deletion.objects + part.objects,
        versions=deletion.versions + part.versions,
        locked_until=max((end for end in ends if end is not None), default=None),
    )


def _erasure(outcome: Erased, before: Deletion, after: Deletion) -> Erasure:
    return Erasure(
        outcome,
        items=after.items - before.items,
        objects=after.objects - before.objects,
        versions=after.versions - before.versions,
    )
