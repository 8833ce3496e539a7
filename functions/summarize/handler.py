"""Lambda entry: a batch of stream records, counted; the answer says where to resume."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.eventbridge import EventBridgeBus
from functions.adapters.settings import SummarizeSettings
from functions.adapters.sqs import SqsRecountQueue
from functions.adapters.stream import BadRecord, change_of, sequence_number
from functions.adapters.telemetry import Telemetry
from functions.core.changes import Change
from functions.summarize.recount import Recount
from functions.summarize.tally import Tallied, Tally
from functions.summarize.telling import RUNS_TOLD, lasting_drift, tell_of_runs

_STEPS_TIMED: Final = 50
"""Of a batch: more would make its line longer than it is worth."""


@dataclass(frozen=True, slots=True)
class Summarize:
    tally: Tally
    table: DynamoDBTable
    telemetry: Telemetry


def summarize_over(
    dynamodb: Any, sqs: Any, events: Callable[[], Any], settings: SummarizeSettings
) -> Summarize:
    """The use case over these clients."""
    table = DynamoDBTable(dynamodb, settings.table)
    totals = DynamoDBTotalsStore(table)
    recounts = SqsRecountQueue(sqs, settings.recount_queue_url)
    tally = Tally(totals, recounts, Recount(totals), EventBridgeBus(events))
    return Summarize(tally, table, Telemetry("summarize"))


@cache
def _summarize() -> Summarize:
    settings = SummarizeSettings.from_environment()
    dynamodb = clients.patient(clients.dynamodb())
    return summarize_over(dynamodb, clients.sqs(), clients.events, settings)


def handle(event: dict[str, Any], context: clients.Context) -> dict[str, Any]:
    clients.PATIENCE.begin(context.get_remaining_time_in_millis())
    return process(event, _summarize())


def process(event: dict[str, Any], summarize: Summarize) -> dict[str, Any]:
    """Count a batch. Lambda resumes at the lowest sequence number in the answer, so a record that
    cannot be read stops the batch there: nothing after it may move a mark past it."""
    began = time.perf_counter()
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
    with summarize.telemetry.without_words():
        tallied = summarize.tally(changes)
    for position, failure in tallied.failed.items():
        ref = next(change.ref for change in changes if change.position == position)
        summarize.telemetry.logger.warning(
            "run will be counted again", extra=ref._asdict(), exc_info=failure
        )
        failed.append(position)
    runs = list(dict.fromkeys("/".join(change.ref) for change in changes))
    took_ms = round((time.perf_counter() - began) * 1000)
    _report(tallied, len(records), {"took_ms": took_ms, "runs": runs[:RUNS_TOLD]}, summarize)
    if not failed:
        return {"batchItemFailures": []}
    return {"batchItemFailures": [{"itemIdentifier": sequence_number(records[min(failed)])}]}


def _report(
    tallied: Tallied, records: int, about: Mapping[str, object], summarize: Summarize
) -> None:
    now = time.time_ns()
    tell_of_runs(tallied.recounts, summarize.telemetry)
    every = len(tallied.counted) // _STEPS_TIMED + 1
    newest = max((step.ended_at for step in tallied.counted), default=None)
    summarize.telemetry.emit(
        {
            "Records": records,
            "RunsFailed": len(tallied.failed),
            "StepsCounted": len(tallied.counted),
            "Recounts": len(tallied.recounts),
            "RecountsRequested": tallied.recount_requests,
            "EventsPublished": tallied.published,
            "EventsRefused": len(tallied.ended) - tallied.published,
            "RecountDrift": sum(recounted.drift for recounted in tallied.recounts),
            "LastingDrift": lasting_drift(tallied.recounts, now),
            **summarize.table.take_consumption(),
        },
        {
            "CountLag": [] if newest is None else [(now - newest) // 1_000_000],
            "StepTime": [step.duration_ns // 1_000_000 for step in tallied.counted[::every]],
        },
        about=about,
    )
