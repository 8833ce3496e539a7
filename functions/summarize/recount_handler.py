"""Lambda entry: the recount queue, which brings requests and the news of failed batches."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.failed_batches import S3FailedBatches
from functions.adapters.settings import RecountSettings
from functions.adapters.sqs import RecountRequest
from functions.adapters.telemetry import Telemetry
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.summarize.recount import Recount, Recounted


@dataclass(frozen=True, slots=True)
class RecountParts:
    recount: Recount
    failed_batches: S3FailedBatches
    table: DynamoDBTable
    telemetry: Telemetry


def recount_over(dynamodb: Any, s3: Any, settings: RecountSettings) -> RecountParts:
    """The use case over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    return RecountParts(
        Recount(DynamoDBTotalsStore(table)),
        S3FailedBatches(s3, settings.failed_batches_bucket),
        table,
        Telemetry("recount"),
    )


@cache
def _parts() -> RecountParts:
    settings = RecountSettings.from_environment()
    return recount_over(clients.dynamodb(), clients.s3(), settings)


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    return process(event, _parts())


def process(event: dict[str, Any], parts: RecountParts) -> dict[str, Any]:
    """Recount each run that the batch asks for, once; the answer names what must come again."""
    asked: dict[RunRef, int | None] = {}
    asked_by: dict[RunRef, list[str]] = {}
    failed: list[str] = []
    for record in event["Records"]:
        requests = _attempt(lambda: _requests(record["body"], parts.failed_batches), parts)  # noqa: B023
        if isinstance(requests, Exception):
            failed.append(record["messageId"])
            continue
        for ref, total in requests:
            asked[ref] = _stronger(asked[ref], total) if ref in asked else total
            asked_by.setdefault(ref, []).append(record["messageId"])
    found: list[Recounted] = []
    for ref, total in asked.items():
        recounted = _attempt(lambda: parts.recount(ref, total), parts)  # noqa: B023
        if isinstance(recounted, Exception):
            failed += asked_by[ref]
        elif recounted:
            found.append(recounted)
    parts.telemetry.emit(
        {
            "Recounts": len(found),
            "RecountsFailed": len(failed),
            "RecountDrift": sum(recounted.drift for recounted in found),
            **parts.table.take_consumption(),
        }
    )
    return {"batchItemFailures": [{"itemIdentifier": one} for one in dict.fromkeys(failed)]}


def _attempt[T](work: Callable[[], T], parts: RecountParts) -> T | Exception:
    """What one message or one run meets must not cost the others of its batch."""
    try:
        return work()
    except Unavailable as failure:
        parts.telemetry.logger.warning("will be asked for again", exc_info=failure)
        return failure
    except Exception as defect:
        parts.telemetry.logger.exception("recount failed")
        return defect


def _requests(body: str, failed_batches: S3FailedBatches) -> list[tuple[RunRef, int | None]]:
    """What a message asks for. Raises what a message that is none of ours makes it raise."""
    message = json.loads(body)
    if message.get("Event") == "s3:TestEvent":  # sent once, when notifications are set up
        return []
    if "Records" in message:
        return [(ref, None) for ref in sorted(failed_batches.runs_in(message))]
    request = msgspec.convert(message, RecountRequest)
    return [(RunRef(request.tenant_id, request.run_id), request.agents_total)]


def _stronger(one: int | None, other: int | None) -> int | None:
    """Of two requests for one run that which may be skipped less easily: None never is."""
    return None if one is None or other is None else max(one, other)
