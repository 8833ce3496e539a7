"""The lake of a MemoryStage: the real handler on the table's stream, and what readers find."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from functions.adapters.settings import LakeSettings
from functions.core import keys, lake_ports
from functions.core.keys import RunRef
from functions.core.lake import Row, Table
from tests.fakes.calls import Calls
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.fakes.s3 import MemoryS3

ENDED = {"succeeded", "failed", "cancelled"}


class PlainFiles:
    """core.lake_ports.LakeFiles as JSON: a thousand schedules must not wait for DuckDB."""

    def __init__(self, s3: MemoryS3) -> None:
        self.s3 = s3

    def put_rows(self, ref: RunRef, table: Table, day: str, rows: Iterable[Row]) -> int:
        lines = [msgspec.json.encode(row) for row in rows]
        key = lake_ports.object_of_run(table, ref, day)
        self.s3.put_object(Key=key, Body=b"\n".join(lines))
        return len(lines)

    def hide(self, ref: RunRef, day: str) -> None:
        for key in lake_ports.objects_of_run(ref, day):
            self.s3.delete_objects(Delete={"Objects": [{"Key": key}]})


class MemoryLake:
    """A bucket of its own, and a place of its own in the stream."""

    def __init__(self, calls: Calls, dynamodb: MemoryDynamoDB) -> None:
        # DuckDB is imported by who asks for a lake alone.
        from functions.lake import handler  # noqa: PLC0415

        self.s3 = MemoryS3(calls)
        self._dynamodb = dynamodb
        self._handler = handler
        self._streamed = 0
        self.parts = handler.lake_over(dynamodb, self.s3, LakeSettings("t", "l"))

    def write_plain(self) -> None:
        """From now on, where what is in the files does not matter."""
        write = replace(self.parts.write, files=PlainFiles(self.s3))
        self.parts = replace(self.parts, write=write)

    def new_stream_records(self) -> list[dict[str, Any]]:
        fresh = self._dynamodb.stream[self._streamed :]
        self._streamed = len(self._dynamodb.stream)
        return [record for record in fresh if passes_filter(record)]

    def deliver(
        self, records: Sequence[dict[str, Any]], late: Callable[[], bool] = lambda: False
    ) -> list[str]:
        """Deliver one batch; the sequence numbers to resume at."""
        if not records:
            return []
        answer = self._handler.process({"Records": list(records)}, self.parts, late)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def files_of(self, run: RunRef) -> list[str]:
        """The keys that readers find of a run, in all tables and under all days."""
        return sorted(key for key in self.s3.objects if _is_of(key, run))

    def versions_of(self, run: RunRef) -> list[str]:
        """The keys of which there is any version."""
        return sorted(key for key in {*self.s3.objects, *self.s3.older} if _is_of(key, run))

    def rows(self, table: str, run: RunRef) -> list[dict[str, Any]]:
        """What DuckDB reads, as in a query over the tenant's files."""
        import duckdb  # noqa: PLC0415

        found: list[dict[str, Any]] = []
        for key in self.files_of(run):
            if key.startswith(f"lake/{table}/"):
                with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
                    file = Path(folder) / "one.parquet"
                    file.write_bytes(self.s3.objects[key])
                    read = database.read_parquet(str(file))
                    names = read.columns
                    found += [dict(zip(names, row, strict=True)) for row in read.fetchall()]
        return found


def passes_filter(record: dict[str, Any]) -> bool:
    """The mapping's filter in plain words; tests/infra holds the template's to the same."""
    sort = record["dynamodb"]["Keys"]["SK"]["S"]
    if record["eventName"] == "REMOVE":
        return False
    status = record["dynamodb"].get("NewImage", {}).get("status", {}).get("S")
    return bool(sort == keys.SUMMARY or (sort == keys.RUN and status in ENDED))


def _is_of(key: str, run: RunRef) -> bool:
    return key.endswith(f"/{run.run_id}.parquet") and f"/tenant_id={run.tenant_id}/" in key
