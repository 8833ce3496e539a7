"""What writing a run to the lake needs from the outside: where its files lie, and the note that
says under which days."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from functions.core import keys, lake
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.lake import Row, Table
from functions.core.model import Run, StepRow
from functions.core.ports import Runs

NOTE_MARGIN_DAYS: Final = 30
"""The note outlives RUN: a run that TTL has left may still be deleted, and its files with it."""


def object_of_run(table: Table, ref: RunRef, day: str) -> str:
    """The key of the run's file, in the lake's own bucket."""
    return f"{keys.LAKE_OBJECTS}{lake.place_of(table, ref, day)}.parquet"


def objects_of_run(ref: RunRef, day: str) -> list[str]:
    return [object_of_run(table, ref, day) for table in lake.TABLES]


def objects_of_tenant(tenant_id: str) -> list[str]:
    """Below these lies all that the lake holds of a tenant."""
    return [f"{keys.LAKE_OBJECTS}{table.name}/tenant_id={tenant_id}/" for table in lake.TABLES]


@dataclass(frozen=True, slots=True)
class LakeNote:
    """`days` under which there may be files of the run, each once; `turn` counts the claims."""

    days: tuple[str, ...] = ()
    turn: int = 0

    def claimed(self, day: str) -> "LakeNote":
        return LakeNote(tuple(dict.fromkeys((*self.days, day))), self.turn + 1)


class LakeNotes(Protocol):
    def load_note(self, ref: RunRef) -> LakeNote:
        """The note as it is now (strongly consistent); an empty one where there is none."""

    def put_note(self, run: Run, before: LakeNote, after: LakeNote) -> bool:
        """Replace the note `before` by `after`; returns False when another stands there."""


class LakeSource(Runs, LakeNotes, Protocol):
    """What the lake reads of the table. Every method may raise Unavailable."""

    def summarized_calls(self, run: Run) -> int:
        """How many calls the run's summary has (strongly consistent); 0 without one."""

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


class LakeFiles(Protocol):
    """Every method may raise Unavailable; repeating it changes nothing."""

    def put_rows(self, ref: RunRef, table: Table, day: str, rows: Iterable[Row]) -> int:
        """Replace the run's file in a table; returns how many rows it has."""

    def hide(self, ref: RunRef, day: str) -> None:
        """Let readers find no file of the run under that day, whether there are any or not."""
