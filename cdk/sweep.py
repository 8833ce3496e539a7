"""What runs by the clock: the sweep, every few minutes."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.function import Entry, Function
from cdk.settings import StageSettings
from functions.adapters import settings as variables
from functions.core import keys
from functions.core.run_events import SOURCE

SWEEP_TIMEOUT: Final = Duration.minutes(4)
"""It stops by itself before, and goes on where it stopped; two never run at the same time."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the sweep looks into, and the queues on which it asks for more."""

    table: dynamodb.TableV2
    recounts: sqs.Queue
    erasures: sqs.Queue


def add_sweep(
    scope: Construct, settings: StageSettings, code: lambda_.Code, reach: Reach
) -> Function:
    """The function, and the rule that starts it: EventBridge runs a clock for nothing."""
    table, recounts, erasures = reach.table, reach.recounts, reach.erasures
    sweep = Function(
        scope,
        "Sweep",
        settings,
        code,
        Entry(
            handler="functions.sweep.handler.handle",
            timeout=SWEEP_TIMEOUT,
            memory_mb=512,
            environment={
                variables.TABLE: table.table_name,
                variables.RECOUNT_QUEUE_URL: recounts.queue_url,
                variables.ERASURE_QUEUE_URL: erasures.queue_url,
                variables.RETENTION_DAYS: str(settings.retention_days),
                variables.SWEEP_MINUTES: str(settings.sweep_minutes),
            },
        ),
    )
    sweep.allow("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", on=table.table_arn)
    for index in (keys.BY_TENANT, keys.OPEN_RUNS):
        sweep.allow("dynamodb:Query", on=f"{table.table_arn}/index/{index}")
    for prefix in (keys.RUN_PREFIX, keys.SWEEP):
        sweep.allow_items(table, prefix, "dynamodb:UpdateItem")
    for queue in (recounts, erasures):
        sweep.allow("sqs:SendMessage", on=queue.queue_arn)
    allow_events(sweep)
    # The next sweep is the retry: one that failed would only do the same work at the same time.
    sweep.function.configure_async_invoke(
        retry_attempts=0, max_event_age=Duration.minutes(settings.sweep_minutes)
    )
    events.Rule(
        scope,
        "SweepSchedule",
        description=f"runtally {settings.stage}: stale runs, retention, overdue deletions",
        schedule=events.Schedule.rate(Duration.minutes(settings.sweep_minutes)),
        targets=[
            targets.LambdaFunction(
                sweep.function,
                retry_attempts=0,
                max_event_age=Duration.minutes(settings.sweep_minutes),
            )
        ],
    )
    return sweep


def allow_events(function: Function) -> None:
    """Let the function tell other programs about runs, as runtally and nobody else."""
    bus = Stack.of(function).format_arn(
        service="events", resource="event-bus", resource_name="default"
    )
    # AWS always says the source; the embedded AWS, which enforces policies too, never does.
    source = {"StringEqualsIfExists": {"events:source": SOURCE}}
    function.allow("events:PutEvents", on=bus, conditions=source)
