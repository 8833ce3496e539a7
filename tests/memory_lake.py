"""The lake of a MemoryStage: the real handler on the table's stream, and what readers find."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from functions.adapters.settings import LakeSettings
from functions.core import keys, lake
from functions.core.keys import RunRef
from functions.core.lake import Row, Table
from tests.fakes.calls import Calls
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.fakes.s3 import MemoryS3

KEPT_DAYS = 3_650
_MONEY = {c.name for t in lake.TABLES for c in t.columns if c.kind.startswith("DECIMAL")}
ENDED = {"succeeded", "failed", "cancelled"}


def write_plain(_table: Table, rows: Iterable[Row], file: Path) -> int:
    """As JSON: a thousand schedules must not wait for DuckDB."""
    lines = list(map(msgspec.json.encode, rows))
    file.write_bytes(b"\n".join(lines))
    return len(lines)


class MemoryLake:
    """A bucket of its own, and a place of its own in the stream."""

    def __init__(self, calls: Calls, dynamodb: MemoryDynamoDB, now_ns: Callable[[], int]) -> None:
        # DuckDB is imported by who asks for a lake alone.
        from functions.adapters.s3_lake import S3LakeFiles  # noqa: PLC0415
        from functions.lake import handler  # noqa: PLC0415

        self.s3 = MemoryS3(calls)
        self._dynamodb = dynamodb
        self._handler = handler
        self._streamed = 0
        self._plain = S3LakeFiles(self.s3, "l", write_plain)  # type: ignore[arg-type] # a fake
        self.parts = handler.lake_over(dynamodb, self.s3, LakeSettings("t", "l", KEPT_DAYS), now_ns)

    def write_plain(self) -> None:
        """From now on, where what is in the files does not matter."""
        self.parts = replace(self.parts, write=replace(self.parts.write, files=self._plain))

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
        """What a query over the tenant's files finds of the run."""
        return [
            row
            for key in self.files_of(run)
            if key.startswith(f"lake/{table}/")
            for row in _rows_in(self.s3.objects[key])
        ]


def _rows_in(content: bytes) -> list[dict[str, Any]]:
    """What DuckDB reads of it; in a plain file, money is text."""
    if not content.startswith(b"PAR1"):
        lines = map(msgspec.json.decode, content.splitlines())
        return [
            {n: Decimal(v) if n in _MONEY and v else v for n, v in row.items()} for row in lines
        ]
    import duckdb  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as database:
        file = Path(folder) / "one.parquet"
        file.write_bytes(content)
        read = database.read_parquet(str(file))
        names = read.columns
        return [dict(zip(names, row, strict=True)) for row in read.fetchall()]


def passes_filter(record: dict[str, Any]) -> bool:
    """The mapping's filter in plain words; tests/infra holds the template's to the same."""
    sort = record["dynamodb"]["Keys"]["SK"]["S"]
    if record["eventName"] == "REMOVE":
        return False
    status = record["dynamodb"].get("NewImage", {}).get("status", {}).get("S")
    return bool(sort == keys.SUMMARY or (sort == keys.RUN and status in ENDED))


def day_in(key: str) -> str:
    return key.partition("/day=")[2].partition("/")[0]


def _is_of(key: str, run: RunRef) -> bool:
    return key.endswith(f"/{run.run_id}.parquet") and f"/tenant_id={run.tenant_id}/" in key
