"""Which of a tenant's runs a command is about: one, or the ended ones that its options leave."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Self

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from functions.api.runs import IndexWalk, as_kept, times_between
from functions.core.api_ports import IndexedRun, RunQuery
from functions.core.model import RunStatus
from local.commands import LocalStageError
from local.reading import Reading
from local.tables import said

_OPEN: Final = frozenset({RunStatus.RUNNING, RunStatus.STALE})


class Failed(Struct, frozen=True):
    """A run that could not be written, and why; the others are."""

    run_id: str
    reason: str


def show_failed(out: Console, failed: Iterable[Failed]) -> None:
    for each in failed:
        line = f" {each.run_id}  {each.reason}"
        out.print(Text.assemble(("✗", "red"), said(line)), soft_wrap=True)


def refuse_both(run: str | None, *options: str | None) -> None:
    """Raises LocalStageError for a run together with options to choose runs by."""
    if run is not None and any(option is not None for option in options):
        advice = "Give a run, or `--pipeline`, `--since` and `--until` to choose runs by."
        raise LocalStageError("A run and options to choose runs by exclude each other.", advice)


@dataclass(slots=True)
class EndedRuns:
    """The oldest first, and how many that would be meant, too, are `open`, as the index says it."""

    runs: list[IndexedRun] = field(default_factory=list)
    open: int = 0

    @classmethod
    def chosen(
        cls, reading: Reading, pipeline: str | None, since: str | None, until: str | None
    ) -> Self:
        """Those of the tenant. Raises LocalStageError and Unavailable."""
        where = {} if pipeline is None else {"pipeline": as_kept(pipeline) or ""}
        query = RunQuery(reading.tenant_id, *times_between(since, until), where)
        found = cls()
        for run in IndexWalk(reading.reader, query, late=lambda: False):
            if run.status in _OPEN:
                found.open += 1
            else:
                found.runs.append(run)
        found.runs.reverse()
        return found
