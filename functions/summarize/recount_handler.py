"""Lambda entry: the recount queue, which brings requests and the news of failed batches."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.failed_batches import S3FailedBatches
from functions.adapters.settings import RecountSettings
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


@cache
def _parts() -> RecountParts:
    settings = RecountSettings.from_environment()
    table = DynamoDBTable(clients.dynamodb(), settings.table)
    return RecountParts(
        Recount(DynamoDBTotalsStore(table)),
        S3FailedBatches(clients.s3(), settings.failed_batches_bucket),
        table,
        Telemetry("recount"),
    )


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    return process(event, _parts())


def process(event: dict[str, Any], parts: RecountParts) -> dict[str, Any]:
    """Recount each run that the batch asks for, once; the answer names what must come again."""
    failed: list[str] = []
    asked: dict[RunRef, int | None] = {}
    asked_by: dict[RunRef, list[str]] = {}
    for record in event["Records"]:
        try:
            for ref, total in _requests(json.loads(record["body"]), parts.failed_batches):
                asked[ref] = _stronger(asked[ref], total) if ref in asked else total
                asked_by.setdefault(ref, []).append(record["messageId"])
        except (Unavailable, ValueError, KeyError) as error:
            parts.telemetry.logger.warning(
                "request cannot be read",
                extra={"message_id": record["messageId"]},
                exc_info=error,
            )
            failed.append(record["messageId"])
    found: list[Recounted] = []
    for ref, total in asked.items():
        try:
            recounted = parts.recount(ref, total)
        except Unavailable as failure:
            run = {"tenant_id": ref.tenant_id, "run_id": ref.run_id}
            parts.telemetry.logger.warning("recount failed", extra=run, exc_info=failure)
            failed += asked_by[ref]
        else:
            found += [recounted] if recounted else []
    parts.telemetry.emit(
        {
            "Recounts": len(found),
            "RecountDrift": sum(recounted.drift for recounted in found),
            **parts.table.take_consumption(),
        }
    )
    return {"batchItemFailures": [{"itemIdentifier": one} for one in dict.fromkeys(failed)]}


def _requests(
    body: dict[str, Any], failed_batches: S3FailedBatches
) -> list[tuple[RunRef, int | None]]:
    if body.get("Event") == "s3:TestEvent":  # sent once, when notifications are set up
        return []
    if "Records" in body:
        return [(ref, None) for ref in sorted(failed_batches.runs_in(body))]
    return [(RunRef(body["tenant_id"], body["run_id"]), body.get("agents_total"))]


def _stronger(one: int | None, other: int | None) -> int | None:
    """Of two requests for one run that which may be skipped less easily: None never is."""
    return None if one is None or other is None else max(one, other)
