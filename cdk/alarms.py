"""When somebody has to look: every alarm of a stage, and the section of the runbook it leads to.

What is missing counts as good, since idle functions and queues publish nothing; only of the sweep,
which runs whatever happens, silence is the bad news.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_cloudwatch as cloudwatch

from cdk.measures import NOW, WHILE, computed, ours, summed, throttled_requests
from cdk.settings import StageSettings
from cdk.watched import Watched, WatchedFunction, WatchedQueue

RUNBOOK: Final = "docs/operations.md"

_OLDEST: Final = Duration.minutes(15)
_OLDEST_REQUEST_TO_ERASE: Final = Duration.hours(2)
"""Erasing takes many turns, the last of which waits for whoever may still be writing."""
_OVERDUE: Final = Duration.hours(2)
_BURSTS_WITHIN: Final = Duration.hours(6)
_REJECTED_AT_LEAST: Final = 10
_REJECTED_PERCENT: Final = 1


@dataclass(frozen=True, slots=True)
class Watch:
    """An alarm: the measure is above its limit for so many periods in a row, or for `red` of them.

    `section` is the anchor of its section in the runbook.
    """

    name: str
    measure: cloudwatch.Metric | cloudwatch.MathExpression
    what: str
    section: str
    above: float = 0
    periods: int = 1
    red: int | None = None
    silence: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING

    @property
    def description(self) -> str:
        return f"{self.what}. What to do: {RUNBOOK}#{self.section}"


def watches(settings: StageSettings, watched: Watched, api: apigatewayv2.HttpApi) -> list[Watch]:
    return [
        *_of_queues(watched),
        *_of_the_stream(settings, watched),
        *_of_records(settings),
        *(_errors(settings, each) for each in watched.functions),
        *_of_functions(settings, watched, api),
        _of_the_table(watched),
    ]


def _of_queues(watched: Watched) -> Iterator[Watch]:
    for each in watched.dead_letters:
        yield Watch(
            _id(each),
            each.queue.metric_approximate_number_of_messages_visible(
                statistic="Maximum", period=NOW
            ),
            f"{each.name} holds messages that could not be processed",
            "dead-letters",
            # What a function takes away passes through.
            periods=3 if each.drained else 1,
        )
    for each in watched.live_queues:
        if each.drained:
            yield _oldest_message(each)
        yield _stopped(each)


def _stopped(each: WatchedQueue) -> Watch:
    idle = "visible > 0 AND FILL(received, 0) == 0"
    metrics = {
        "visible": each.queue.metric_approximate_number_of_messages_visible(
            statistic="Minimum", period=NOW
        ),
        "received": each.queue.metric_number_of_messages_received(statistic="Sum", period=NOW),
    }
    if not each.drained:
        # All workers may be busy, each with a job that takes longer than these periods.
        idle += " AND FILL(busy, 0) == 0"
        metrics["busy"] = each.queue.metric_approximate_number_of_messages_not_visible(
            statistic="Maximum", period=NOW
        )
    return Watch(
        f"{_id(each)}Stopped",
        computed(f"IF({idle}, 1, 0)", metrics, "waiting and not received"),
        f"messages wait in {each.name} and nobody receives them",
        "nobody-receives",
        periods=3,
    )


def _oldest_message(each: WatchedQueue) -> Watch:
    limit = _OLDEST_REQUEST_TO_ERASE if each.name == "Erasures" else _OLDEST
    return Watch(
        f"{_id(each)}Age",
        each.queue.metric_approximate_age_of_oldest_message(statistic="Maximum", period=NOW),
        f"the oldest message in {each.name} has waited for over {limit.to_human_string()}",
        "oldest-message",
        above=limit.to_seconds(),
        periods=2,
    )


def _of_the_stream(settings: StageSettings, watched: Watched) -> Iterator[Watch]:
    if summarize := watched.function("summarize"):
        yield Watch(
            "StreamAge",
            summarize.metric("IteratorAge", statistic="Maximum", period=NOW),
            "counting is over a quarter of an hour behind; live totals are old",
            "stream-age",
            above=_OLDEST.to_milliseconds(),
            periods=2,
        )
        yield Watch(
            "StreamStopped",
            computed(
                "IF(FILL(stored, 0) > 0 AND FILL(invoked, 0) == 0, 1, 0)",
                {
                    "stored": ours(settings, "ingest", "StepsStored"),
                    "invoked": summarize.metric_invocations(statistic="Sum", period=NOW),
                },
                "stored and not counted",
                WHILE,
            ),
            "steps are stored and nobody reads the stream",
            "nobody-receives",
            # Not in a row: a stage may be used for some minutes an hour. And twice, since what is
            # stored at the end of a period may be counted in the next one.
            periods=ceil(_BURSTS_WITHIN.to_minutes() / WHILE.to_minutes()),
            red=2,
        )


def _of_records(settings: StageSettings) -> Iterator[Watch]:
    """About what is recorded, as our own functions tell it."""
    yield Watch(
        "FailedBatches",
        ours(settings, "recount", "FailedBatches"),
        "stream batches were given up; their runs have been recounted",
        "failed-batches",
    )
    yield Watch(
        "Drift",
        summed(
            [ours(settings, each, "LastingDrift") for each in ("summarize", "recount")],
            "steps by which totals are off",
            WHILE,
        ),
        "live totals differ from what a recount found, and will stay so",
        "drift",
    )
    sweeps = _time_of_sweeps(settings)
    yield Watch(
        "DeletionsOverdue",
        ours(settings, "sweep", "DeletionsOverdue").with_(period=sweeps),
        "runs have been waiting for hours to be erased",
        "deletions-overdue",
        periods=max(2, ceil(_OVERDUE.to_minutes() / sweeps.to_minutes())),
    )
    yield Watch(
        "Rejections",
        computed(
            f"IF(FILL(rejected, 0) >= {_REJECTED_AT_LEAST}, 100 * FILL(rejected, 0) /"
            " (FILL(rejected, 0) + FILL(stored, 0) + FILL(again, 0)), 0)",
            {
                "rejected": ours(settings, "ingest", "Rejected"),
                "stored": ours(settings, "ingest", "StepsStored"),
                "again": ours(settings, "ingest", "Duplicates"),
            },
            "percent rejected",
            WHILE,
        ),
        f"over {_REJECTED_PERCENT} % of what arrives is rejected",
        "rejections",
        above=_REJECTED_PERCENT,
    )


def _errors(settings: StageSettings, each: WatchedFunction) -> Watch:
    """Twice before what crashes could come a third time: in between it may be hidden for long."""
    again = each.comes_again
    if each.service == "sweep":
        again = Duration.minutes(settings.sweep_minutes)
    timeout = each.function.timeout or Duration.seconds(0)
    apart = again.to_seconds() + timeout.to_seconds()
    return Watch(
        f"{each.service.title().replace('_', '')}Errors",
        each.function.metric_errors(statistic="Sum", period=NOW),
        f"{each.service} crashes or runs out of time or memory",
        "function-errors",
        periods=ceil(apart / NOW.to_seconds()) + 1,
        red=2,
    )


def _of_functions(
    settings: StageSettings, watched: Watched, api: apigatewayv2.HttpApi
) -> Iterator[Watch]:
    throttles = [each.function.metric_throttles(period=NOW) for each in watched.functions]
    yield Watch(
        "FunctionsThrottled",
        summed(throttles, "throttled invocations"),
        "invocations are throttled: the account's concurrency is used up",
        "throttling",
        periods=3,
    )
    yield Watch(
        "ApiFailing",
        api.metric_server_error(statistic="Sum", period=NOW),
        "the API answers with 5xx",
        "the-api-answers-5xx",
        periods=3,
    )
    sweep = watched.function("sweep")
    if sweep:
        sweeps = _time_of_sweeps(settings)
        yield Watch(
            "SweepMissing",
            computed(
                "IF(FILL(invoked, 0) == 0, 1, 0)",
                {"invoked": sweep.metric_invocations(statistic="Sum", period=sweeps)},
                "no sweep",
                sweeps,
            ),
            "the sweep does not run any more",
            "sweep-missing",
            periods=2,
            silence=cloudwatch.TreatMissingData.BREACHING,
        )


def _of_the_table(watched: Watched) -> Watch:
    return Watch(
        "TableThrottled",
        summed(throttled_requests(watched.table), "throttled requests"),
        "DynamoDB throttles the table or one of its indexes",
        "throttling",
        periods=3,
    )


def _time_of_sweeps(settings: StageSettings) -> Duration:
    """Holds two sweeps at least, also when one is late."""
    return Duration.minutes(3 * settings.sweep_minutes)


def _id(each: WatchedQueue) -> str:
    return each.name.replace("/", "")
