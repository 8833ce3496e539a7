"""Lambda entry: every few minutes, a look at what nobody sends an event about."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.adapters.dynamodb_sweep import DynamoDBOpenRuns
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.eventbridge import EventBridgeBus
from functions.adapters.settings import SweepSettings
from functions.adapters.sqs import SqsErasures, SqsRecountQueue
from functions.adapters.telemetry import Defect, Telemetry
from functions.core.errors import Unavailable
from functions.sweep.deleting import Deleted, Deleting
from functions.sweep.sweep import Sweep, Swept

_KEPT_FOR_DELETING_MS: Final = 90_000
_KEPT_TO_END_MS: Final = 20_000
"""One page of runs, with every request at its slowest, is begun before and ends within."""


@dataclass(frozen=True, slots=True)
class SweepParts:
    sweep: Sweep
    deleting: Deleting
    table: DynamoDBTable
    telemetry: Telemetry


def sweep_over(
    dynamodb: Any,
    sqs: Any,
    events: Callable[[], Any],
    settings: SweepSettings,
    now_ns: Callable[[], int],
) -> SweepParts:
    """The use cases over these clients, which do one thing after the other."""
    table = DynamoDBTable(dynamodb, settings.table)
    open_runs = DynamoDBOpenRuns(table)
    recounts = SqsRecountQueue(sqs, settings.recount_queue_url)
    deleting = Deleting(
        tenants=DynamoDBTenants(table),
        reader=DynamoDBRunReader(table),
        runs=open_runs,
        unfinished=open_runs,
        tombstones=DynamoDBTombstones(table),
        erasures=SqsErasures(sqs, settings.erasure_queue_url),
        now_ns=now_ns,
        retention_days=settings.retention_days,
        every_s=settings.every_s,
    )
    sweep = Sweep(open_runs, recounts, EventBridgeBus(events), now_ns, settings.every_s)
    return SweepParts(sweep, deleting, table, Telemetry("sweep"))


@cache
def _parts() -> SweepParts:
    made = (clients.dynamodb(), clients.sqs(), clients.events)
    parts = sweep_over(*made, SweepSettings.from_environment(), time.time_ns)
    looks = ThreadPoolExecutor(clients.STEPS_AT_ONCE).map
    return replace(parts, sweep=replace(parts.sweep, spread=looks))


def handle(event: dict[str, Any], context: clients.Context) -> dict[str, int]:  # noqa: ARG001
    return process(context.get_remaining_time_in_millis, _parts())


def process(left_ms: Callable[[], int], parts: SweepParts) -> dict[str, int]:
    """Sweep the open runs, then see to deletions, and say what was done, whatever fails. The next
    sweep goes on where the time of this one ended, and repeats what failed. Raises the first
    failure that ended either of them."""
    swept, deleted = Swept(), Deleted()
    works: list[Callable[[], None]] = [
        lambda: parts.sweep(lambda: left_ms() < _KEPT_FOR_DELETING_MS, swept),
        lambda: parts.deleting(lambda: left_ms() < _KEPT_TO_END_MS, deleted),
    ]
    ended_by: list[Unavailable | Defect] = []
    for work in works:
        try:
            with parts.telemetry.without_words():
                work()
        except (Unavailable, Defect) as failure:
            ended_by.append(failure)
    done = _report(swept, deleted, parts)
    if ended_by:
        raise ended_by[0]
    return done


def _report(swept: Swept, deleted: Deleted, parts: SweepParts) -> dict[str, int]:
    failed = [*swept.failed, *deleted.failed]
    for ref, failure in failed[:10]:
        whose = ref._asdict() if ref else {}
        parts.telemetry.logger.warning("will be looked at again", extra=whose, exc_info=failure)
    done = {
        "OpenRuns": swept.open_runs,
        "RunsStale": swept.marked,
        "RunsResumed": swept.taken_off,
        "RunsFailed": len(failed),
        "RecountsRequested": swept.recount_requests,
        "EventsRefused": swept.events_refused,
        "DeletionsBegun": deleted.begun,
        "DeletionsOverdue": deleted.overdue,
        "SweepsUnfinished": int(not (swept.finished and deleted.finished)),
    }
    parts.telemetry.emit({**done, **parts.table.take_consumption()})
    return done
