"""Lambda entry: a batch of stream records about ended runs, each of which is written to the lake;
and a request to write one run anew."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import msgspec

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_lake import DynamoDBLakeSource
from functions.adapters.s3_lake import S3LakeFiles
from functions.adapters.settings import LakeSettings
from functions.adapters.stream import BadRecord, run_of, sequence_number
from functions.adapters.telemetry import Telemetry
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.lake.write import WriteRun, Written

_LEFT_MS: Final = 150_000
"""Half of the function's time: with less, no further run is begun."""
_RUNS_AT_ONCE: Final = 4
"""A small run waits for AWS most of its time. So many of the largest fit in memory and on disk."""
_RUNS_TOLD: Final = 100


class NoTime(Exception):  # noqa: N818 - the fact
    """A run was not begun."""


type Attempted = Written | Exception | None
type RunSpread = Callable[[Callable[[RunRef], Attempted], Iterable[RunRef]], Iterable[Attempted]]
"""How independent runs are spread: `map` one after the other, an executor's `map` at once."""


class RunToWrite(msgspec.Struct, frozen=True):
    """What an operator invokes the function with, for a run that was given up or never seen."""

    tenant_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class LakeParts:
    write: WriteRun
    table: DynamoDBTable
    telemetry: Telemetry
    spread: RunSpread = map


def lake_over(
    dynamodb: Any, s3: Any, settings: LakeSettings, now_ns: Callable[[], int]
) -> LakeParts:
    """The use case over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    files = S3LakeFiles(s3, settings.lake_bucket)
    write = WriteRun(DynamoDBLakeSource(table), files, now_ns, settings.retention_days)
    return LakeParts(write, table, Telemetry("lake"))


@cache
def _parts() -> LakeParts:
    made = (clients.patient(clients.dynamodb()), clients.s3())
    parts = lake_over(*made, LakeSettings.from_environment(), time.time_ns)
    return replace(parts, spread=ThreadPoolExecutor(_RUNS_AT_ONCE).map)


def handle(event: dict[str, Any], context: clients.Context) -> dict[str, Any]:
    clients.PATIENCE.begin(context.get_remaining_time_in_millis())
    if "Records" not in event:
        return write_again(event, _parts())
    return process(event, _parts(), lambda: context.get_remaining_time_in_millis() < _LEFT_MS)


def write_again(event: dict[str, Any], parts: LakeParts) -> dict[str, Any]:
    """Write the one run; says how many rows it has, 0 when the lake has none of it."""
    asked = msgspec.convert(event, RunToWrite)
    with parts.telemetry.without_words():
        written = parts.write(RunRef(asked.tenant_id, asked.run_id))
    return {"rows": written.rows if written else 0}


def process(event: dict[str, Any], parts: LakeParts, late: Callable[[], bool]) -> dict[str, Any]:
    """Write each run of the batch once. Lambda resumes at the lowest sequence number in the answer:
    the first record of a run that failed, or for which there was no time; the first always has."""
    began = time.perf_counter()
    records = event["Records"]
    first: dict[RunRef, int] = {}
    failed: list[int] = []
    for position, record in enumerate(records):
        try:
            first.setdefault(run_of(record), position)
        except BadRecord as bad:
            parts.telemetry.logger.exception("record cannot be read", extra={"why": str(bad)})
            failed.append(position)
            break
    refs = list(first)

    def attempt(ref: RunRef) -> Attempted:
        return NoTime() if ref != refs[0] and late() else _attempt(ref, parts)

    attempted = list(parts.spread(attempt, refs))
    written = [one for one in attempted if isinstance(one, Written)]
    failed += [
        first[ref] for ref, one in zip(refs, attempted, strict=True) if isinstance(one, Exception)
    ]
    parts.telemetry.emit(
        {
            "Records": len(records),
            "RunsWritten": len(written),
            "RowsWritten": sum(one.rows for one in written),
            "RunsFailed": len(failed),
            **parts.table.take_consumption(),
        },
        about={
            "took_ms": round((time.perf_counter() - began) * 1000),
            "runs": ["/".join(ref) for ref in refs[:_RUNS_TOLD]],
        },
    )
    if not failed:
        return {"batchItemFailures": []}
    return {"batchItemFailures": [{"itemIdentifier": sequence_number(records[min(failed)])}]}


def _attempt(ref: RunRef, parts: LakeParts) -> Attempted:
    """What one run meets must not cost the others of its batch."""
    try:
        return parts.write(ref)
    except Unavailable as failure:
        parts.telemetry.logger.warning(
            "run will be written to the lake again", extra=ref._asdict(), exc_info=failure
        )
        return failure
    except Exception as defect:
        parts.telemetry.logger.exception("run could not be written", extra=ref._asdict())
        return defect
