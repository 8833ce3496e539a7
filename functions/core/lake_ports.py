"""What writing a run to the lake needs from the outside: where its files lie, and the note that
says under which days."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from functions.core import keys, lake
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.lake import Row, Table
from functions.core.model import Run, StepRow
from functions.core.ports import Runs
from functions.core.retention import DAY_S
from functions.core.times import SECOND

_NOTE_MARGIN_DAYS: Final = 730
"""So much may the lake's retention be raised later, which counts for files that are there, too."""

ROWS: Final = "rows"
"""How many a file has: metadata of its object."""
_SUFFIX: Final = ".parquet"
_OBJECT: Final = re.compile(
    rf"{keys.LAKE_OBJECTS}[a-z]+/tenant_id=(?P<tenant_id>[^/]+)/day=(?P<day>[0-9-]{{10}})"
    rf"/(?P<name>[^/]+){re.escape(_SUFFIX)}"
)


def noted_until(now_ns: int, retention_days: int) -> int:
    """When the note of a run expires whose files are written now, in seconds: not before them, so
    that a run which TTL has long taken can still be deleted, and its files with it."""
    return now_ns // SECOND + (retention_days + _NOTE_MARGIN_DAYS) * DAY_S


def object_of_run(table: Table, ref: RunRef, day: str) -> str:
    """The key of the run's file, in the lake's own bucket."""
    return f"{keys.LAKE_OBJECTS}{lake.place_of(table, ref, day)}{_SUFFIX}"


def objects_of_run(ref: RunRef, day: str) -> list[str]:
    return [object_of_run(table, ref, day) for table in lake.TABLES]


def objects_of_tenant(tenant_id: str) -> list[str]:
    """Below these lies all that the lake holds of a tenant."""
    return [_below(table, tenant_id) for table in lake.TABLES]


def files_of_calls(tenant_id: str) -> str:
    """Below this lies a file of each run of which there is any: it is put first."""
    return _below(lake.CALLS, tenant_id)


def parse_object(key: str) -> tuple[RunRef, str]:
    """The run whose file it is, and the day under which it lies. Raises ValueError for none."""
    parsed = _OBJECT.fullmatch(key)
    if parsed is None:
        raise ValueError(f"no file of the lake: {key}")
    return RunRef(parsed["tenant_id"], lake.run_at(parsed["name"])), parsed["day"]


def _below(table: Table, tenant_id: str) -> str:
    return f"{keys.LAKE_OBJECTS}{table.name}/tenant_id={tenant_id}/"


@dataclass(frozen=True, slots=True)
class LakeNote:
    """`days` under which there may be files of the run, each once; `turn` counts the claims, 0
    where there is no note. `expires_at` is in seconds; `calls` is how many the files hold, or are
    about to: those with fewer never replace them, since calls are only ever lost by expiry."""

    days: tuple[str, ...] = ()
    turn: int = 0
    expires_at: int = 0
    calls: int = 0

    def claimed(self, day: str, expires_at: int, calls: int) -> "LakeNote":
        return LakeNote(
            days=tuple(dict.fromkeys((*self.days, day))),
            turn=self.turn + 1,
            expires_at=max(expires_at, self.expires_at),
            calls=calls,
        )


class LakeNotes(Protocol):
    """Every method may raise Unavailable."""

    def load_note(self, ref: RunRef) -> LakeNote:
        """The note as it is now (strongly consistent); an empty one where there is none."""

    def put_note(self, ref: RunRef, before: LakeNote, after: LakeNote) -> bool:
        """Replace the note `before` by `after`; returns False when another stands there."""

    def forget(self, refs: Iterable[RunRef]) -> None:
        """Delete their notes, those that are there; a run may be named more than once."""


class LakeSource(Runs, LakeNotes, Protocol):
    """What the lake reads of the table. Every method may raise Unavailable."""

    def summarized_calls(self, run: Run) -> int | None:
        """How many calls the run's summary has (strongly consistent); None without one."""

    def steps_of_run(self, run: Run) -> Iterable[StepRow]:
        """Every step (strongly consistent), bucket after bucket."""

    def calls_of_run(self, run: Run) -> Iterator[Item]:
        """Every step with all that its item says (strongly consistent), in step order."""


class Taken(NamedTuple):
    """`names` that readers find no longer, `versions` that are gone, and, in nanoseconds, until
    when the last of those that a lock holds has to stay."""

    names: int = 0
    versions: int = 0
    locked_until: int | None = None


class LakeObjects(Protocol):
    """Delete all versions of files, a bounded part at a time. Those that a lock holds are hidden,
    and counted by no part. Raises Unavailable; repeating it changes nothing."""

    def take_run(self, ref: RunRef, days: Iterable[str]) -> Iterator[Taken]: ...

    def take_tenant(self, tenant_id: str) -> Iterator[Taken]: ...

    def runs_of_tenant(self, tenant_id: str) -> Iterator[RunRef]:
        """The runs of which there are files, hidden ones included."""


@dataclass(frozen=True, slots=True)
class Lake:
    """Where a stage has one: the note of a run says under which days there are files. It goes when
    nobody can add to it any more, and they have gone before; so no file is ever forgotten."""

    notes: LakeNotes
    objects: LakeObjects


class LakeFiles(Protocol):
    """Every method may raise Unavailable; repeating it changes nothing."""

    def put_rows(self, ref: RunRef, table: Table, day: str, rows: Iterable[Row]) -> int:
        """Replace the run's file in a table; returns how many rows it has."""

    def hide(self, ref: RunRef, day: str) -> None:
        """Let readers find no file of the run under that day, whether there are any or not."""
