"""Lambda entry: one HTTP request of an API Gateway HTTP API."""

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.dynamodb_invocations import DynamoDBInvocations
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.s3 import S3ObjectStore
from functions.adapters.settings import ApiSettings
from functions.adapters.sqs import SqsErasures, SqsEventQueue, SqsJobQueues
from functions.adapters.telemetry import Telemetry
from functions.api.auth import Authenticate
from functions.api.comparison import CompareRuns
from functions.api.deletions import DeleteRun, ReadDeletion
from functions.api.events import AcceptEvents
from functions.api.http import Http
from functions.api.insights import SummarizeRuns
from functions.api.operations import Api
from functions.api.otlp import AcceptOtlp
from functions.api.payloads import ReadStored
from functions.api.runs import ListRuns, ReadRun
from functions.api.service_entries import Invoke, ReadInvocation

if TYPE_CHECKING:
    from runtally.redaction import Redactor


def api_over(
    dynamodb: Any, s3: Any, sqs: Any, settings: ApiSettings, now_ns: Callable[[], int]
) -> Api:
    """The use cases over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    objects = S3ObjectStore(s3, settings.bucket)
    reader = DynamoDBRunReader(table)
    invocations = DynamoDBInvocations(table)
    tombstones = DynamoDBTombstones(table)
    events = SqsEventQueue(sqs, settings.event_queue_url, objects)
    redactor = _redactor() if settings.redact else None
    return Api(
        authenticate=Authenticate(DynamoDBTenants(table), now_ns),
        list_runs=ListRuns(reader, now_ns),
        read_run=ReadRun(reader, now_ns),
        stored=ReadStored(reader, objects, now_ns),
        summarize_runs=SummarizeRuns(reader, now_ns),
        compare_runs=CompareRuns(reader, now_ns),
        accept_events=AcceptEvents(events, now_ns, settings.retention_days, redactor),
        accept_otlp=AcceptOtlp(events, now_ns, settings.retention_days, redactor),
        invoke=Invoke(
            invocations,
            SqsJobQueues(sqs, settings.service_entries),
            objects,
            now_ns,
            settings.retention_days,
        ),
        read_invocation=ReadInvocation(invocations, objects, now_ns),
        delete_run=DeleteRun(
            tombstones,
            SqsErasures(sqs, settings.erasure_queue_url),
            now_ns,
            settings.retention_days,
        ),
        read_deletion=ReadDeletion(tombstones, now_ns),
    )


def _redactor() -> "Redactor":
    """By the managed rules; what the function logs goes through them, too."""
    from runtally import redaction  # noqa: PLC0415 - heavy, and few stages want it

    return redaction.Redactor(redaction.rules(), formatted=("api", "runtally"))


@cache
def _http() -> Http:
    settings = ApiSettings.from_environment()
    telemetry = Telemetry("api")
    telemetry.tell("runtally", logging.ERROR)  # its warnings quote what a tenant sent
    api = api_over(
        clients.dynamodb(clients.ANSWERING),
        clients.s3(clients.ANSWERING),
        clients.sqs(clients.ANSWERING),
        settings,
        time.time_ns,
    )
    return Http(api, telemetry)


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
    return _http()(event, context)
