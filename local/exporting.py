"""A run's rows out of the table into files: whole or not at all, and only when they changed."""

import gzip
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from functions.api.runs import live_run
from functions.core import items, lake, times
from functions.core.api_ports import RunReader, RunRecord
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.lake import Column, Row, Table
from functions.core.model import Run
from functions.core.phases import FOLD_VERSION
from local.export_manifest import Entry, Format, Manifest

SUFFIXES: Final[dict[Format, str]] = {"parquet": ".parquet", "jsonl": ".jsonl.gz"}
_UNFINISHED: Final = ".unfinished"


class Incomplete(ValueError):  # noqa: N818 - the fact
    """Calls that the run's summary counts are not there (any more)."""


@dataclass(frozen=True, slots=True)
class Export:
    """Runs into `folder`, laid out as the lake. `read` is called once a call that was read."""

    reader: RunReader
    folder: Path
    format: Format
    manifest: Manifest
    now_ns: Callable[[], int]
    read: Callable[[], object] = field(default=lambda: None)

    def __call__(self, ref: RunRef) -> int | None:
        """Write the run's files, unless they are there and nothing has changed; how many calls.

        None when they are there. Each file takes its place whole; files of a day on which the run
        is no longer said to have begun are removed. Raises NotEnded, Incomplete, NotFound, and
        KeyError or ValueError for an item that is none.
        """
        record = self.reader.record_of(ref)
        run = live_run(record.run, self.now_ns())
        before = self.manifest.entry(ref, self.format)
        if before is not None and before.state == _state_of(record, run) and self._there(before):
            return None
        unfinished = self.folder / _UNFINISHED
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        unfinished.mkdir()
        try:
            return self._write(run, record, before, unfinished)
        finally:
            shutil.rmtree(unfinished)

    def _write(self, run: Run, record: RunRecord, before: Entry | None, unfinished: Path) -> int:
        steps = [items.step_row(item) for item in self._counted(run)]
        made = {
            table: (unfinished / table.name, self._rows_to_file(table, rows, unfinished))
            for table, rows in lake.rows_of_run(run, steps, self.reader.calls_of_run(run, ""))
        }
        live_run(self.reader.load_run(run.ref), self.now_ns())  # nothing was erased meanwhile
        summarized = record.summary.totals.agents_total if record.summary else 0
        found = min(len(steps), made[lake.CALLS][1])
        if found < max(len(steps), summarized):
            raise Incomplete(f"{found:,} of {max(len(steps), summarized):,} calls are there")
        settled = record.summary is not None and summarized == len(steps)
        entry = Entry(*run.ref, self.format, lake.day_of(run), None)
        self._remove(before, entry)
        self.manifest.note(entry)
        for table, (file, _) in made.items():
            place = self._place(table, entry)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
        if settled:
            state = _state_of(record, run)
            self.manifest.note(msgspec.structs.replace(entry, state=state))
        return len(steps)

    def _counted(self, run: Run) -> Iterator[Item]:
        for item in self.reader.calls_of_run(run, ""):
            self.read()
            yield item

    def _rows_to_file(self, table: Table, rows: Iterable[Row], unfinished: Path) -> int:
        if self.format == "jsonl":
            return _write_jsonl(table, rows, unfinished / table.name)
        from functions.adapters.parquet import write_parquet  # noqa: PLC0415 - loads DuckDB

        return write_parquet(table, rows, unfinished / table.name)

    def _place(self, table: Table, entry: Entry) -> Path:
        ref = RunRef(entry.tenant_id, entry.run_id)
        return self.folder / (lake.place_of(table, ref, entry.day) + SUFFIXES[self.format])

    def _there(self, entry: Entry) -> bool:
        return all(self._place(table, entry).exists() for table in lake.TABLES)

    def _remove(self, before: Entry | None, entry: Entry) -> None:
        """What was written of the run when it was said to have begun on another day."""
        if before is not None and before.day != entry.day:
            for table in lake.TABLES:
                self._place(table, before).unlink(missing_ok=True)


def _state_of(record: RunRecord, run: Run) -> str:
    """The same as long as the run's rows are: which start and end decide, how many calls the
    summary covers, and by which rules rows are made of them."""
    summary = record.summary
    decides = (
        (run.start.order, run.start.implicit),
        run.end and run.end.order,
        summary and (summary.totals.agents_total, summary.at_total, summary.fold_version),
        FOLD_VERSION,
        [(column.name, column.kind) for table in lake.TABLES for column in table.columns],
    )
    return hashlib.sha256(msgspec.json.encode(decides)).hexdigest()[:32]


def _write_jsonl(table: Table, rows: Iterable[Row], file: Path) -> int:
    """A row a line, gzipped, its columns in the table's order."""
    encode = msgspec.json.Encoder(decimal_format="string").encode
    count = 0
    with gzip.open(file, "wb", compresslevel=6) as lines:
        for row in rows:
            shown = {column.name: _shown(column, row[column.name]) for column in table.columns}
            lines.write(encode(shown) + b"\n")
            count += 1
    return count


def _shown(column: Column, value: Any) -> object:
    """As the API writes it: money is a decimal string, a time RFC 3339 with nine decimals."""
    if value is None:
        return None
    match column.kind:
        case "BIGINT":
            return int(value)
        case "DOUBLE":
            return float(value)
        case "TIMESTAMP":
            return times.text_of(value)
        case "DECIMAL(38,18)":
            return format(Decimal(value), "f")
    return value
