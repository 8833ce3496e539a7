"""Lambda entry: the recount queue, which brings requests and the news of failed batches."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import msgspec

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.eventbridge import EventBridgeBus
from functions.adapters.failed_batches import S3FailedBatches
from functions.adapters.settings import RecountSettings
from functions.adapters.sqs import RecountRequest
from functions.adapters.telemetry import Telemetry
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.ports import EventBus
from functions.core.run_events import run_ended
from functions.summarize.recount import Recount, Recounted
from functions.summarize.telling import RUNS_TOLD, lasting_drift, tell_of_runs


@dataclass(frozen=True, slots=True)
class RecountParts:
    recount: Recount
    failed_batches: S3FailedBatches
    bus: EventBus
    table: DynamoDBTable
    telemetry: Telemetry


def recount_over(
    dynamodb: Any, s3: Any, events: Callable[[], Any], settings: RecountSettings
) -> RecountParts:
    """The use case over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    return RecountParts(
        Recount(DynamoDBTotalsStore(table)),
        S3FailedBatches(s3, settings.failed_batches_bucket),
        EventBridgeBus(events),
        table,
        Telemetry("recount"),
    )


@cache
def _parts() -> RecountParts:
    settings = RecountSettings.from_environment()
    return recount_over(clients.patient(clients.dynamodb()), clients.s3(), clients.events, settings)


def handle(event: dict[str, Any], context: clients.Context) -> dict[str, Any]:
    clients.PATIENCE.begin(context.get_remaining_time_in_millis())
    return process(event, _parts())


class Asked(NamedTuple):
    """What a message asks for one run, in RecountRequest's words."""

    agents_total: int | None
    announce: bool

    def joined(self, other: "Asked") -> "Asked":
        """One recount for both: that which may be skipped less easily; None never is."""
        announce = self.announce or other.announce
        if self.agents_total is None or other.agents_total is None:
            return Asked(None, announce)
        return Asked(max(self.agents_total, other.agents_total), announce)


def process(event: dict[str, Any], parts: RecountParts) -> dict[str, Any]:
    """Recount each run that the batch asks for, once; the answer names what must come again."""
    began = time.perf_counter()
    of_failed_batches: list[str] = []
    asked: dict[RunRef, Asked] = {}
    asked_by: dict[RunRef, list[str]] = {}
    failed: list[str] = []
    for record in event["Records"]:
        message = {"message_id": record["messageId"]}
        requests = _attempt(lambda: _requests(record["body"], parts.failed_batches), parts, message)  # noqa: B023
        if isinstance(requests, Exception):
            failed.append(record["messageId"])
            continue
        if requests.of_failed_batch:
            of_failed_batches.append(record["messageId"])
        for ref, request in requests.runs:
            asked[ref] = asked[ref].joined(request) if ref in asked else request
            asked_by.setdefault(ref, []).append(record["messageId"])
    found: list[Recounted] = []
    for ref, request in asked.items():
        recounted = _attempt(
            lambda: parts.recount(ref, request.agents_total),  # noqa: B023
            parts,
            ref._asdict(),
        )
        if isinstance(recounted, Exception):
            failed += asked_by[ref]
        elif recounted:
            found.append(recounted)
    untold = _tell([one for one in found if one.run.end and asked[one.run.ref].announce], parts)
    for ref in untold:
        failed += asked_by[ref]
    tell_of_runs(found, parts.telemetry)
    come_again = dict.fromkeys(failed)
    counts = {
        "RecountsFailed": len(come_again),
        # Once each: when all is done that its message asked for.
        "FailedBatches": sum(one not in come_again for one in of_failed_batches),
        "EventsRefused": len(untold),
    }
    _report(found, counts, began, parts)
    return {"batchItemFailures": [{"itemIdentifier": one} for one in come_again]}


def _tell(ended: list[Recounted], parts: RecountParts) -> list[RunRef]:
    """Publish that these runs have ended, now that their summaries stand; those not taken."""
    return [
        event.ref
        for event in parts.bus.publish([run_ended(one.run, one.summary.totals) for one in ended])
    ]


def _report(
    found: list[Recounted], counts: Mapping[str, int], began: float, parts: RecountParts
) -> None:
    parts.telemetry.emit(
        {
            "Recounts": len(found),
            **counts,
            "RecountDrift": sum(recounted.drift for recounted in found),
            "LastingDrift": lasting_drift(found, time.time_ns()),
            **parts.table.take_consumption(),
        },
        about={
            "took_ms": round((time.perf_counter() - began) * 1000),
            "runs": ["/".join(recounted.run.ref) for recounted in found[:RUNS_TOLD]],
        },
    )


def _attempt[T](
    work: Callable[[], T], parts: RecountParts, whose: Mapping[str, str]
) -> T | Exception:
    """What one message or one run meets must not cost the others of its batch."""
    try:
        return work()
    except Unavailable as failure:
        parts.telemetry.logger.warning("will be asked for again", extra=whose, exc_info=failure)
        return failure
    except Exception as defect:
        parts.telemetry.logger.exception("recount failed", extra=whose)
        return defect


class _Requests(NamedTuple):
    runs: list[tuple[RunRef, Asked]]
    of_failed_batch: bool = False


def _requests(body: str, failed_batches: S3FailedBatches) -> _Requests:
    """What a message asks for. Raises what a message that is none of ours makes it raise."""
    message = json.loads(body)
    if message.get("Event") == "s3:TestEvent":  # sent once, when notifications are set up
        return _Requests([])
    if "Records" in message:
        runs = [
            (ref, Asked(None, announce=has_end))
            for ref, has_end in sorted(failed_batches.runs_in(message).items())
        ]
        return _Requests(runs, of_failed_batch=True)
    request = msgspec.convert(message, RecountRequest)
    ref = RunRef(request.tenant_id, request.run_id)
    return _Requests([(ref, Asked(request.agents_total, request.announce))])
