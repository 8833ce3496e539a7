"""Lambda entry: a batch of SQS messages, each recorded or returned for another delivery."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from functions.adapters import clients
from functions.adapters.direct_puts import with_direct_puts
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_invocations import DynamoDBInvocations
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.dynamodb_runs import Spread as StepSpread
from functions.adapters.s3 import S3ObjectStore
from functions.adapters.settings import IngestSettings
from functions.adapters.sqs import SqsDeadLetters, SqsErasures
from functions.adapters.telemetry import Telemetry
from functions.core.errors import Unavailable
from functions.ingest.answers import TakeAnswer
from functions.ingest.record import RecordMessage, Result

type Answer = Result | Exception
type Spread = Callable[
    [Callable[[dict[str, Any]], Answer], Iterable[dict[str, Any]]], Iterable[Answer]
]


@dataclass(frozen=True, slots=True)
class Ingest:
    record: RecordMessage
    table: DynamoDBTable
    telemetry: Telemetry
    spread: Spread = map


def ingest_over(
    dynamodb: Any, s3: Any, sqs: Any, settings: IngestSettings, now_ns: Callable[[], int]
) -> Ingest:
    """The use case over these clients, which does one thing after the other."""
    table = DynamoDBTable(dynamodb, settings.table)
    objects = S3ObjectStore(s3, settings.bucket)
    record = RecordMessage(
        runs=DynamoDBRunStore(table),
        objects=objects,
        dead_letters=SqsDeadLetters(sqs, settings.dead_letter_queue_url, objects),
        take_answer=TakeAnswer(DynamoDBInvocations(table), objects, now_ns),
        erasures=SqsErasures(sqs, settings.erasure_queue_url),
        now_ns=now_ns,
        retention_days=settings.retention_days,
    )
    return Ingest(record, table, Telemetry("ingest"))


def at_once(ingest: Ingest, steps: StepSpread, messages: Spread) -> Ingest:
    """The same, with the steps of a message, and the messages of a batch, spread by these."""
    record = replace(ingest.record, runs=DynamoDBRunStore(ingest.table, steps))
    return replace(ingest, record=record, spread=messages)


@cache
def _ingest() -> Ingest:
    settings = IngestSettings.from_environment()
    patient = clients.patient(clients.dynamodb())
    dynamodb = with_direct_puts(patient, clients.credentials())
    return at_once(
        ingest_over(dynamodb, clients.s3(), clients.sqs(), settings, time.time_ns),
        steps=ThreadPoolExecutor(clients.STEPS_AT_ONCE).map,
        messages=ThreadPoolExecutor(clients.MESSAGES_AT_ONCE).map,
    )


def handle(event: dict[str, Any], context: clients.Context) -> dict[str, Any]:
    clients.PATIENCE.begin(context.get_remaining_time_in_millis())
    return process(event, _ingest())


def process(event: dict[str, Any], ingest: Ingest) -> dict[str, Any]:
    """Record every message of the batch; the answer names those that must be delivered again."""
    began = time.perf_counter()
    records = event["Records"]
    answers = list(ingest.spread(lambda record: _attempt(record, ingest), records))
    took_ms = round((time.perf_counter() - began) * 1000)
    _report(answers, {"took_ms": took_ms, "messages": list(map(_told, records, answers))}, ingest)
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["messageId"]}
            for record, answer in zip(records, answers, strict=True)
            if isinstance(answer, Exception)
        ]
    }


def _attempt(record: dict[str, Any], ingest: Ingest) -> Answer:
    log = ingest.telemetry.logger
    message = {"message_id": record["messageId"]}
    try:
        result = ingest.record(record["body"])
    except Unavailable as failure:
        log.warning("message will be delivered again", extra=message, exc_info=failure)
        return failure
    except Exception as defect:
        log.exception("message could not be recorded", extra=message)
        return defect
    message |= result.whose
    for refusal in result.refusals:
        why = {"reason": refusal.reason, "field": refusal.field, "detail": refusal.detail}
        log.warning("rejected", extra={**message, **why})
    if result.conflicts:
        log.warning("conflict", extra={**message, "ids": result.conflicts[:10]})
    if result.late_answers:
        log.warning("late answer", extra={**message, "ids": result.late_answers[:10]})
    return result


def _told(record: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """What the batch's line says of one message, so that a run's way can be followed by its id."""
    message = {"message_id": record["messageId"]}
    if isinstance(answer, Exception):
        return message | {"failed": True}
    return {**message, **answer.whose, "stored": answer.stored}


def _report(answers: list[Answer], about: Mapping[str, object], ingest: Ingest) -> None:
    results = [answer for answer in answers if isinstance(answer, Result)]
    ingest.telemetry.emit(
        {
            "Messages": len(answers),
            "MessagesFailed": len(answers) - len(results),
            "StepsStored": sum(result.stored for result in results),
            "Answers": sum(result.answers for result in results),
            "LateAnswers": sum(len(result.late_answers) for result in results),
            "Duplicates": sum(result.duplicates for result in results),
            "Conflicts": sum(len(result.conflicts) for result in results),
            "AfterDeletion": sum(result.after_deletion for result in results),
            "PayloadBytes": sum(result.payload_bytes for result in results),
            **ingest.table.take_consumption(),
        },
        {"StoreLag": [r.store_lag_ms for r in results if r.store_lag_ms is not None]},
        [refusal.reason for result in results for refusal in result.refusals],
        about,
    )
