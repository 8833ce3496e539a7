"""Lambda entry: a request to erase what a deleted run left behind."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import msgspec

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_deletions import (
    DeleteSpread,
    DynamoDBItemsOfRun,
    DynamoDBTombstones,
)
from functions.adapters.dynamodb_lake import DynamoDBLakeNotes
from functions.adapters.s3_lake_versions import S3LakeVersions
from functions.adapters.s3_versions import S3Versions
from functions.adapters.settings import EraseSettings
from functions.adapters.sqs import ErasureRequest, SqsErasures
from functions.adapters.telemetry import Telemetry
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake_ports import Lake
from functions.erase.erase import Erase, Erased

_LEFT_MS: Final = 60_000
"""What one bounded step takes at the very most, with every request of it repeated."""


@dataclass(frozen=True, slots=True)
class EraseParts:
    erase: Erase
    table: DynamoDBTable
    telemetry: Telemetry


def erase_over(  # noqa: PLR0913 - each by its name
    dynamodb: Any,
    s3: Any,
    sqs: Any,
    settings: EraseSettings,
    now_ns: Callable[[], int],
    *,
    s3_of_lake: Any = None,
) -> EraseParts:
    """The use case over these clients, which does one thing after the other."""
    table = DynamoDBTable(dynamodb, settings.table)
    lake = None
    if settings.lake_bucket:
        objects = S3LakeVersions(s3_of_lake or s3, settings.lake_bucket)
        lake = Lake(DynamoDBLakeNotes(table), objects)
    erase = Erase(
        tombstones=DynamoDBTombstones(table),
        items=DynamoDBItemsOfRun(table),
        objects=S3Versions(s3, settings.bucket),
        erasures=SqsErasures(sqs, settings.erasure_queue_url),
        now_ns=now_ns,
        quiet_s=settings.quiet_s,
        lake=lake,
    )
    return EraseParts(erase, table, Telemetry("erase"))


def at_once(parts: EraseParts, batches: DeleteSpread) -> EraseParts:
    """The same, with the batches of a part spread by this."""
    items = DynamoDBItemsOfRun(parts.table, batches)
    return replace(parts, erase=replace(parts.erase, items=items))


@cache
def _parts() -> EraseParts:
    settings = EraseSettings.from_environment()
    made = (clients.dynamodb(), clients.s3(), clients.sqs())
    return at_once(
        erase_over(*made, settings, time.time_ns), ThreadPoolExecutor(clients.STEPS_AT_ONCE).map
    )


def handle(event: dict[str, Any], context: clients.Context) -> dict[str, Any]:
    return process(event, _parts(), lambda: context.get_remaining_time_in_millis() < _LEFT_MS)


def process(event: dict[str, Any], parts: EraseParts, late: Callable[[], bool]) -> dict[str, Any]:
    """Erase for each request of the batch; the answer names those that must be delivered again."""
    failed = [
        record["messageId"] for record in event["Records"] if not _attempt(record, parts, late)
    ]
    return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}


def _attempt(record: dict[str, Any], parts: EraseParts, late: Callable[[], bool]) -> bool:
    log = parts.telemetry.logger
    said = {"message_id": record["messageId"]}
    counts: dict[str, float] = {"ErasuresFailed": 1}
    try:
        request = msgspec.json.decode(record["body"], type=ErasureRequest)
        said |= {"tenant_id": request.tenant_id, "run_id": request.run_id}
        erased = parts.erase(RunRef(request.tenant_id, request.run_id), late)
        said["outcome"] = erased.outcome.value
        counts = {
            "ErasuresDropped": erased.outcome is Erased.DROPPED,
            "DeletionsFinished": erased.outcome is Erased.FINISHED,
            "ItemsErased": erased.items,
            "ObjectsErased": erased.objects,
            "VersionsErased": erased.versions,
        }
    except Unavailable as failure:
        log.warning("will be asked for again", extra=said, exc_info=failure)
    except Exception:
        log.exception("run could not be erased", extra=said)
    parts.telemetry.emit({"Erasures": 1, **counts, **parts.table.take_consumption()}, about=said)
    return "ErasuresFailed" not in counts
