"""Lambda entry: a batch of stream records, counted; the answer says where to resume."""

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.settings import SummarizeSettings
from functions.adapters.sqs import SqsRecountQueue
from functions.adapters.stream import BadRecord, change_of, sequence_number
from functions.adapters.telemetry import Telemetry
from functions.core.changes import Change
from functions.summarize.recount import Recount
from functions.summarize.tally import Tallied, Tally


@dataclass(frozen=True, slots=True)
class Summarize:
    tally: Tally
    table: DynamoDBTable
    telemetry: Telemetry


def summarize_over(dynamodb: Any, sqs: Any, settings: SummarizeSettings) -> Summarize:
    """The use case over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    totals = DynamoDBTotalsStore(table)
    recounts = SqsRecountQueue(sqs, settings.recount_queue_url)
    return Summarize(Tally(totals, recounts, Recount(totals)), table, Telemetry("summarize"))


@cache
def _summarize() -> Summarize:
    settings = SummarizeSettings.from_environment()
    return summarize_over(clients.dynamodb(), clients.sqs(), settings)


def handle(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001
    return process(event, _summarize())


def process(event: dict[str, Any], summarize: Summarize) -> dict[str, Any]:
    """Count a batch. Lambda resumes at the lowest sequence number in the answer, so a record that
    cannot be read stops the batch there: nothing after it may move a mark past it."""
    records = event["Records"]
    changes: list[Change] = []
    failed: list[int] = []
    for position, record in enumerate(records):
        try:
            changes.append(change_of(position, record))
        except BadRecord as bad:
            summarize.telemetry.logger.exception("record cannot be read", extra={"why": str(bad)})
            failed.append(position)
            break
    tallied = summarize.tally(changes)
    for position, failure in tallied.failed.items():
        summarize.telemetry.logger.warning("run will be counted again", exc_info=failure)
        failed.append(position)
    _report(tallied, len(records), summarize)
    if not failed:
        return {"batchItemFailures": []}
    return {"batchItemFailures": [{"itemIdentifier": sequence_number(records[min(failed)])}]}


def _report(tallied: Tallied, records: int, summarize: Summarize) -> None:
    now = time.time_ns()
    newest = max((step.ended_at for step in tallied.counted), default=None)
    summarize.telemetry.emit(
        {
            "Records": records,
            "RunsFailed": len(tallied.failed),
            "StepsCounted": len(tallied.counted),
            "Recounts": tallied.recounts,
            "RecountsRequested": tallied.recount_requests,
            "RecountDrift": tallied.drift,
            **summarize.table.take_consumption(),
        },
        {"CountLag": [] if newest is None else [(now - newest) // 1_000_000]},
    )
