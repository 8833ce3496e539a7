"""A run's rows out of the table into files: whole or not at all, and only when they changed."""

import gzip
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import batched
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
_RECORDS_AT_ONCE: Final = 25


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
        is no longer said to have begun are removed. Raises NotEnded, NotFound, SameFile, KeyError
        or ValueError for an item that is none, and Incomplete for fewer calls than the summary
        counts, or than the files have, which stay.
        """
        record = self.reader.record_of(ref)
        run = live_run(record.run, self.now_ns())
        before = self.manifest.entry(ref, self.format)
        there = self._files(before) if before else []
        if before and before.state == _state_of(record, run) and len(there) == len(lake.TABLES):
            return None
        unfinished = self.folder / _UNFINISHED
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        unfinished.mkdir()
        try:
            return self._write(run, record, before, unfinished)
        finally:
            shutil.rmtree(unfinished)

    def prune(self, tenant_id: str) -> int:
        """Remove the files, in every format, of the tenant's runs that were deleted from the stage;
        how many runs had any.

        Only a tombstone says that a run was deleted: what has expired, or is not there for whatever
        reason, keeps its files. Raises Unavailable.
        """
        pruned: set[RunRef] = set()
        for entries in batched(self.manifest.entries_of(tenant_id), _RECORDS_AT_ONCE, strict=False):
            refs = [RunRef(each.tenant_id, each.run_id) for each in entries]
            records = self.reader.records_of(list(dict.fromkeys(refs)))
            for ref, entry in zip(refs, entries, strict=True):
                run = records[ref].run
                if run is not None and run.deleted and self._unlink(entry):
                    pruned.add(ref)
        return len(pruned)

    def _write(self, run: Run, record: RunRecord, before: Entry | None, unfinished: Path) -> int:
        steps = [items.step_row(item) for item in self._counted(run)]
        summarized = record.summary.totals.agents_total if record.summary else 0
        calls = self.reader.calls_of_run(run, "")
        made: dict[Table, Path] = {}
        least = max(summarized, before.calls if before and self._files(before) else 0)
        for table, rows in lake.rows_of_run(run, steps, calls, least):
            made[table] = unfinished / table.name
            self._rows_to_file(table, rows, made[table])
        live_run(self.reader.load_run(run.ref), self.now_ns())  # nothing was erased meanwhile
        settled = record.summary is not None and summarized == len(steps)
        entry = Entry(*run.ref, self.format, lake.day_of(run), None, len(steps))
        self._remove(before, entry)
        self.manifest.note(entry)
        places = [self._place(table, entry) for table in made]
        for file, place in zip(made.values(), places, strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
        if settled:
            state = _state_of(record, run)
            self.manifest.settle(msgspec.structs.replace(entry, state=state), places)
        return len(steps)

    def _counted(self, run: Run) -> Iterator[Item]:
        for item in self.reader.calls_of_run(run, ""):
            self.read()
            yield item

    def _rows_to_file(self, table: Table, rows: Iterable[Row], file: Path) -> None:
        if self.format == "jsonl":
            _write_jsonl(table, rows, file)
            return
        from functions.adapters.parquet import write_parquet  # noqa: PLC0415 - loads DuckDB

        write_parquet(table, rows, file)

    def _place(self, table: Table, entry: Entry) -> Path:
        ref = RunRef(entry.tenant_id, entry.run_id)
        return self.folder / (lake.place_of(table, ref, entry.day) + SUFFIXES[entry.format])

    def _files(self, entry: Entry) -> list[Path]:
        """Those that are there."""
        places = [self._place(table, entry) for table in lake.TABLES]
        return [place for place in places if place.exists()]

    def _remove(self, before: Entry | None, entry: Entry) -> None:
        """What was written of the run when it was said to have begun on another day."""
        if before is not None and before.day != entry.day:
            self._unlink(before)

    def _unlink(self, entry: Entry) -> bool:
        """Whether there were any."""
        files = self._files(entry)
        for file in files:
            file.unlink()
        return bool(files)


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


def _write_jsonl(table: Table, rows: Iterable[Row], file: Path) -> None:
    """A row a line, gzipped, its columns in the table's order."""
    encode = msgspec.json.Encoder(decimal_format="string").encode
    with gzip.open(file, "wb", compresslevel=6) as lines:
        for row in rows:
            shown = {column.name: _shown(column, row[column.name]) for column in table.columns}
            lines.write(encode(shown) + b"\n")


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
