"""Runs: a tenant's list, and one run with every call."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import batched, islice
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from functions.api import cursors, shapes, showing
from functions.api.pages import Page, Row
from functions.core import caps, times
from functions.core.api_ports import IndexedRun, RunQuery, RunReader, RunRecord
from functions.core.errors import NotFound, Rejected
from functions.core.keys import RunRef
from functions.core.model import Run
from runtally.wire import Nanoseconds, RunId, StepId

RUNS_A_PAGE: Final = 20
RUNS_AT_ONCE: Final = 25
"""Four items each: one BatchGetItem."""
_INDEX_ROWS: Final = 250
"""Of the index in one request, about 150 bytes each; a filter may leave none of them."""
_LOG_LINES: Final = 200
_LOG_BYTES: Final = 96_000
_LATEST: Final = 10**19

Limit = Annotated[int, Meta(ge=1, le=100, description="Rows of a page, at most")]
At = Annotated[
    str,
    Meta(
        description="RFC 3339, such as 2026-11-30T02:46:01Z",
        extra_json_schema={"format": "date-time"},
    ),
]


class RunsWanted(Struct, frozen=True, kw_only=True):
    """Which runs of a tenant: those that started in [from, to)."""

    status: Literal["running", "succeeded", "failed", "cancelled", "stale"] | None = None
    pipeline: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    from_: At | None = field(default=None, name="from")
    to: At | None = None
    limit: Limit = RUNS_A_PAGE
    cursor: str | None = None


class CallsWanted(Struct, frozen=True, kw_only=True):
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ListRuns:
    reader: RunReader
    now_ns: Callable[[], int]

    def __call__(
        self, tenant_id: str, wanted: RunsWanted, late: Callable[[], bool] = lambda: False
    ) -> Page:
        """A tenant's runs, newest first, with totals, preview and phases.

        Pages of the index are followed until there are `limit` runs, the end is reached, or it is
        late: then the cursor goes on where the index stood. Raises Rejected.
        """
        since, until = times_between(wanted.from_, wanted.to)
        where = {
            name: value
            for name, value in (("status", wanted.status), ("pipeline", as_kept(wanted.pipeline)))
            if value is not None
        }
        scope = f"runs {tenant_id} {since} {until} {where}"
        walk = IndexWalk(self.reader, RunQuery(tenant_id, since, until, where), late)
        if not where:
            walk.rows = wanted.limit + 1  # the one more tells whether it is the end
        if wanted.cursor is not None:
            walk.position = cursors.decode(scope, wanted.cursor, tuple[Nanoseconds, RunId])
        indexed = iter(walk)

        def cursor_at(position: tuple[int, str]) -> str:
            return cursors.encode(scope, *position)

        taken: list[tuple[int, str]] = []

        def rows() -> Iterator[Row]:
            for chunk in batched(islice(indexed, wanted.limit), RUNS_AT_ONCE, strict=False):
                records = self.reader.records_of([run.ref for run in chunk])
                for run in chunk:
                    taken.append((run.started_at, run.ref.run_id))
                    if (shown := self._show(run, records[run.ref])) is not None:
                        yield Row(shown, cursor_at(taken[-1]))

        def rest() -> str | None:
            if taken and next(indexed, None) is not None:
                return cursor_at(taken[-1])
            return None if walk.position is None else cursor_at(walk.position)

        return Page(None, "runs", rows(), rest)

    def _show(self, indexed: IndexedRun, record: RunRecord) -> shapes.ListedRun | None:
        """None for a run that is gone, though the index still has it."""
        if record.run is None:
            fields = showing.indexed_fields(indexed)
        elif is_gone(record.run, self.now_ns()):
            return None
        else:
            fields = showing.run_fields(record.run)
        return shapes.ListedRun(
            **fields,
            totals=showing.sums_of(record),
            preview=showing.preview_of(record),
            phases=showing.phases_of(record),
        )


class IndexWalk:
    """A tenant's runs in the order of the index, newest first, as far as time allows.

    `position` is where to go on; None once the end is reached.
    """

    def __init__(self, reader: RunReader, query: RunQuery, late: Callable[[], bool]) -> None:
        self._reader = reader
        self._query = query
        self._late = late
        self.position: tuple[int, str] | None = None
        self.rows = _INDEX_ROWS

    def __iter__(self) -> Iterator[IndexedRun]:
        while True:
            page = self._reader.page_of_runs(self._query, self.position, self.rows)
            for run in page.runs:
                self.position = (run.started_at, run.ref.run_id)
                yield run
            self.position = page.last
            if page.last is None or self._late():
                return


@dataclass(frozen=True, slots=True)
class ReadRun:
    reader: RunReader
    now_ns: Callable[[], int]

    def __call__(self, ref: RunRef, wanted: CallsWanted) -> Page:
        """The run and its calls in step order; on the first page also all else that is known.

        Raises NotFound, Rejected.
        """
        scope = f"calls {ref.tenant_id} {ref.run_id}"
        after = ""
        if wanted.cursor is not None:
            (after,) = cursors.decode(scope, wanted.cursor, tuple[StepId])
        if after:
            run = live_run(self.reader.load_run(ref), self.now_ns())
            head = shapes.RunHead(shapes.Run(**showing.run_fields(run)))
        else:
            record = self.reader.record_of(ref)
            run = live_run(record.run, self.now_ns())
            head = self._first_page(run, record)
        rows = (
            Row(shown := showing.call(item), cursors.encode(scope, shown.step_id))
            for item in self.reader.calls_of_run(run, after)
        )
        return Page(head, "calls", rows)

    def _first_page(self, run: Run, record: RunRecord) -> shapes.RunHead:
        newest = self.reader.newest_logs(run.ref, _LOG_LINES + 1)
        return shapes.RunHead(
            run=shapes.Run(**showing.run_fields(run)),
            totals=showing.sums_of(record),
            phases=showing.phases_of(record),
            result=showing.result(run, record.result),
            logs=showing.logs(newest, _LOG_LINES, _LOG_BYTES),
        )


def live_run(run: Run | None, now_ns: int) -> Run:
    """Raises NotFound for a run that never was, was deleted or has expired, all alike."""
    if run is None or is_gone(run, now_ns):
        raise NotFound("there is no such run")
    return run


def is_gone(run: Run, now_ns: int) -> bool:
    """TTL takes days to remove what has expired; until then it is only to be treated so."""
    return run.deleted or run.expires_at <= now_ns // times.SECOND


def times_between(since: str | None, until: str | None) -> tuple[int, int]:
    """[from, to) in nanoseconds. Raises Rejected with the name of the parameter."""
    start = 0 if since is None else _time("from", since)
    end = _LATEST if until is None else _time("to", until)
    if start >= end:
        raise Rejected("invalid_field", "to", "must be later than `from`")
    return start, end


def as_kept(pipeline: str | None) -> str | None:
    """A long name of a pipeline as it stands in the table: cut."""
    return None if pipeline is None else caps.cut(pipeline, caps.NAME)


def _time(name: str, text: str) -> int:
    try:
        return times.parse(text)
    except ValueError as error:
        raise Rejected("invalid_field", name, str(error)) from None
