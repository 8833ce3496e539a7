"""Bugs that somebody might write in what keeps the lake, as switches; see bugs.py."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final
from unittest import mock

from functions.adapters.dynamodb_lake import DynamoDBLakeNotes
from functions.adapters.s3_lake import S3LakeFiles
from functions.adapters.s3_lake_versions import S3LakeVersions
from functions.core import keys
from functions.core.lake_ports import LakeNote
from functions.erase import erase
from functions.lake import handler
from functions.lake.write import WriteRun
from tests.memory_lake import passes_filter
from tests.simulation import world

type Planted = Callable[[], AbstractContextManager[object]]


def _patched(owner: object, name: str, bug: object) -> Planted:
    return lambda: mock.patch.object(owner, name, bug)


# -- turns --------------------------------------------------------------------------------------

_claimed = LakeNote.claimed
_write = WriteRun.__call__


def _no_turn(self: LakeNote, day: str, *given: Any) -> LakeNote:
    """The note says where the files are, and nothing else."""
    return replace(_claimed(self, day, *given), turn=1)


def _put_whatever_stands_there(self: Any, ref: Any, before: LakeNote, after: LakeNote) -> bool:
    stands = self.load_note(ref)
    return _put_note(self, ref, stands, after)


_put_note = DynamoDBLakeNotes.put_note


class _Notes:
    """Another way to go about the note of a run, within one call. Handed over, not patched in:
    another task may be writing meanwhile."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.claim: tuple[Any, LakeNote, LakeNote] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def put_note(self, ref: Any, before: LakeNote, after: LakeNote) -> bool:
        self.claim = (ref, before, after)
        return bool(self.source.put_note(ref, before, after))


class _NotLookedAt(_Notes):
    """Whoever has claimed a turn takes it for the last one."""

    def load_note(self, ref: Any) -> Any:
        return self.claim[2] if self.claim else self.source.load_note(ref)


class _PutAfterwards(_Notes):
    """Files first, then the note that says where they are."""

    def put_note(self, *claim: Any) -> bool:
        self.claim = claim
        return True

    def load_note(self, ref: Any) -> Any:
        if self.claim and not self.source.put_note(*self.claim):
            self.claim = None
            return LakeNote(turn=-1)
        return self.source.load_note(ref)


class _ReadLate(_Notes):
    """The turn is claimed on the note as it stands after the run was read."""

    def put_note(self, ref: Any, before: LakeNote, after: LakeNote) -> bool:
        stands = self.source.load_note(ref)
        days = tuple(dict.fromkeys((*stands.days, *after.days)))
        self.claim = (ref, after, replace(after, days=days, turn=stands.turn + 1))
        return bool(self.source.put_note(ref, stands, self.claim[2]))

    def load_note(self, ref: Any) -> Any:
        note = self.source.load_note(ref)
        if self.claim and note == self.claim[2]:
            return self.claim[1]
        return note


class _Tidied(_Notes):
    """Days under which nothing is shown any more are taken off the note."""

    def load_note(self, ref: Any) -> Any:
        note = self.source.load_note(ref)
        if self.claim and note == self.claim[2]:
            self.source.put_note(ref, note, replace(note, days=note.days[-1:], turn=note.turn + 1))
        return note


def _writes_with(notes: type[_Notes]) -> Callable[[Any, Any], Any]:
    return lambda self, ref: _write(replace(self, source=notes(self.source)), ref)


# -- the stream ---------------------------------------------------------------------------------


def _only(*wanted: str) -> Callable[[dict[str, Any]], bool]:
    """The event source's filter lets through less than it should."""

    def bug(record: dict[str, Any]) -> bool:
        return passes_filter(record) and record["dynamodb"]["Keys"]["SK"]["S"] in wanted

    return bug


def _only_new_ends(record: dict[str, Any]) -> bool:
    """An end that takes another's place, or a start, does not count."""
    was = record["dynamodb"].get("OldImage", {})
    sort = record["dynamodb"]["Keys"]["SK"]["S"]
    return passes_filter(record) and (sort != keys.RUN or "end" not in was)


def _nothing_failed(event: Any, parts: Any, late: Any) -> dict[str, Any]:
    _process(event, parts, late)
    return {"batchItemFailures": []}


_process = handler.process


# -- deletion -----------------------------------------------------------------------------------

_parts_of_lake = erase._parts_of_lake


def _note_gone_at_once(lake: Any, ref: Any, **_: Any) -> Iterator[Any]:
    """Whether or not somebody may still be writing."""
    return _parts_of_lake(lake, ref, quiet=True)


def _note_gone_first(lake: Any, ref: Any, *, quiet: bool) -> Iterator[Any]:
    note = lake.notes.load_note(ref)
    if quiet:
        lake.notes.forget([ref])
    for taken in lake.objects.take_run(ref, note.days):
        yield erase._Part(0, *taken)


def _last_day_only(self: Any, ref: Any, days: Any) -> Iterator[Any]:
    return _take_run(self, ref, days[-1:])


_take_run = S3LakeVersions.take_run


BUGS: Final[Mapping[str, Planted]] = {
    "lake: no turn claimed": _patched(LakeNote, "claimed", _no_turn),
    "lake: turn not looked at afterwards": _patched(
        WriteRun, "__call__", _writes_with(_NotLookedAt)
    ),
    "lake: turn claimed on whatever stands there": _patched(
        DynamoDBLakeNotes, "put_note", _put_whatever_stands_there
    ),
    "lake: note read after the run": _patched(WriteRun, "__call__", _writes_with(_ReadLate)),
    "lake: note put after the files": _patched(WriteRun, "__call__", _writes_with(_PutAfterwards)),
    "lake: days taken off the note": _patched(WriteRun, "__call__", _writes_with(_Tidied)),
    "lake: other days not hidden": _patched(S3LakeFiles, "hide", lambda self, ref, day: None),
    "lake: filter without RUN": _patched(world, "passes_filter_of_lake", _only(keys.SUMMARY)),
    "lake: filter without SUMMARY": _patched(world, "passes_filter_of_lake", _only(keys.RUN)),
    "lake: filter without re-ends": _patched(world, "passes_filter_of_lake", _only_new_ends),
    "lake: batch response swallowed": _patched(handler, "process", _nothing_failed),
    "lake: resumes behind the lowest failure": lambda: mock.patch.object(
        handler, "min", max, create=True
    ),
    "lake: LAKE taken in the first look": _patched(erase, "_parts_of_lake", _note_gone_at_once),
    "lake: LAKE taken before the files": _patched(erase, "_parts_of_lake", _note_gone_first),
    "lake: one day erased": _patched(S3LakeVersions, "take_run", _last_day_only),
    "lake: locked versions not hidden": _patched(S3LakeVersions, "_hide", lambda self, names: None),
}

_WRITERS: Final = {
    "lake": True,
    "lake_lanes": 4,
    "lake_asks": 6,
    "lake_late": 3,
    "faults": 0,
    "badness": 0.0,
    "splits": 0,
    "reads": 0,
    "sweeps": 0,
    "deletes": 0,
    "redrives": 0,
    "rebuild": False,
}
"""Many at once, and nobody who comes again and mends it."""

_TWO_FAIL: Final = {
    "lake": True,
    "lake_lanes": 1,
    "lake_asks": 0,
    "lake_faults": True,
    "faults": 12,
    "fault_rate": 0.1,
    "badness": 0.0,
    "deletes": 1,
}
"""Of several runs in one batch, which does not come again for another reason."""

FOCUS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {"lake": True} for name in BUGS},
    "lake: no turn claimed": _WRITERS,
    "lake: resumes behind the lowest failure": _TWO_FAIL,
    "lake: note read after the run": _WRITERS,
}
