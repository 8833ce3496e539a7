"""Lambda entry: the dead letters of the work queues, jobs that were delivered in vain."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_invocations import DynamoDBInvocations
from functions.adapters.s3 import S3ObjectStore
from functions.adapters.settings import DeadJobsSettings
from functions.adapters.telemetry import Telemetry
from functions.api.service_entries import GivenUp, GiveUpJob
from functions.core.errors import Unavailable


@dataclass(frozen=True, slots=True)
class DeadJobs:
    give_up: GiveUpJob
    table: DynamoDBTable
    telemetry: Telemetry


def dead_jobs_over(
    dynamodb: Any, s3: Any, settings: DeadJobsSettings, now_ns: Callable[[], int]
) -> DeadJobs:
    """The use case over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    objects = S3ObjectStore(s3, settings.bucket)
    give_up = GiveUpJob(DynamoDBInvocations(table), objects, now_ns)
    return DeadJobs(give_up, table, Telemetry("dead_jobs"))


@cache
def _dead_jobs() -> DeadJobs:
    settings = DeadJobsSettings.from_environment()
    return dead_jobs_over(clients.dynamodb(), clients.s3(), settings, time.time_ns)


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    return process(event, _dead_jobs())


def process(event: dict[str, Any], dead_jobs: DeadJobs) -> dict[str, Any]:
    """Give up every job of the batch; the answer names the messages that must come again."""
    records = event["Records"]
    answers = [_attempt(record, dead_jobs) for record in records]
    given_up = [answer for answer in answers if isinstance(answer, GivenUp)]
    dead_jobs.telemetry.emit(
        {
            "Messages": len(answers),
            "MessagesFailed": len(answers) - len(given_up),
            "InvocationsFailed": sum(one.failed for one in given_up),
            **dead_jobs.table.take_consumption(),
        },
        rejected=[one.refusal.reason for one in given_up if one.refusal],
    )
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["messageId"]}
            for record, answer in zip(records, answers, strict=True)
            if isinstance(answer, Exception)
        ]
    }


def _attempt(record: dict[str, Any], dead_jobs: DeadJobs) -> GivenUp | Exception:
    """What one message meets must not cost the others of its batch."""
    log = dead_jobs.telemetry.logger
    message = {"message_id": record["messageId"]}
    try:
        given_up = dead_jobs.give_up(record["body"])
    except Unavailable as failure:
        log.warning("message will be delivered again", extra=message, exc_info=failure)
        return failure
    except Exception as defect:
        log.exception("message could not be given up", extra=message)
        return defect
    message["kept_as"] = given_up.kept_as
    if given_up.ref:
        log.warning("job given up", extra={**message, **given_up.ref._asdict()})
    if refusal := given_up.refusal:
        why = {"reason": refusal.reason, "field": refusal.field, "detail": refusal.detail}
        log.warning("rejected", extra={**message, **why})
    return given_up
