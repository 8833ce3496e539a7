"""What a stage costs by the month while nothing happens, counted in its templates.

What an account has for nothing (10 alarms, 3 dashboards, a million
requests to SQS) is not taken off by `dollars`; it holds once, for all of its stages.
"""

import re
from typing import Final, NamedTuple

from benchmarks import aws_prices
from tests.infra.assembly import STACKS, Assembly, Template, resources_of

FREE_ALARM_METRICS: Final = 10
FREE_DASHBOARDS: Final = 3
FREE_DASHBOARD_METRICS: Final = 50
"""Of each of them: one with more is paid for, https://aws.amazon.com/cloudwatch/pricing/."""
POLLED_QUEUE: Final = 5 * 30 * 24 * 3_600 // 20 * aws_prices.SQS_REQUEST
"""Lambda asks an empty queue five at a time, for twenty seconds each:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""
SWEEP: Final = (
    aws_prices.LAMBDA_GB_SECOND / 4 + aws_prices.LAMBDA_REQUEST + 10 * aws_prices.DYNAMODB_READ_UNIT
)
"""Half a second of 512 MB, one request, and twenty reads of half a unit."""

SMALLEST_CACHE: Final = 30 * 24 * aws_prices.ELASTICACHE_GB_HOUR / 10


class Idle(NamedTuple):
    """`sweeps` are those of a month of 30 days."""

    alarms: int
    alarm_metrics: int
    dashboards: int
    polled_queues: int
    sweeps: int
    caches: int
    keys: int

    @property
    def dollars(self) -> float:
        bill = (
            self.alarm_metrics * aws_prices.ALARM_METRIC_MONTH
            + self.dashboards * aws_prices.DASHBOARD_MONTH
            + self.polled_queues * POLLED_QUEUE
            + self.sweeps * SWEEP
            + self.caches * SMALLEST_CACHE
            + self.keys * aws_prices.KMS_KEY_MONTH
        )
        return round(float(bill), 2)


def idle(template: Template) -> Idle:
    """Of one stack. Everything else in it is paid by use: see the tests of the resource types."""
    alarms = resources_of(template, "AWS::CloudWatch::Alarm").values()
    metrics = sum(
        sum("MetricStat" in query for query in alarm["Metrics"]) if "Metrics" in alarm else 1
        for alarm in alarms
    )
    mappings = resources_of(template, "AWS::Lambda::EventSourceMapping").values()
    return Idle(
        len(alarms),
        metrics,
        len(resources_of(template, "AWS::CloudWatch::Dashboard")),
        # Reading a DynamoDB stream costs a function nothing.
        sum("StartingPosition" not in mapping for mapping in mappings),
        sum(
            30 * 24 * 60 // _minutes(rule["ScheduleExpression"])
            for rule in resources_of(template, "AWS::Events::Rule").values()
        ),
        len(resources_of(template, "AWS::ElastiCache::ServerlessCache")),
        len(resources_of(template, "AWS::KMS::Key")),
    )


def _minutes(rate: str) -> int:
    found = re.fullmatch(r"rate\((\d+) minutes?\)", rate)
    if not found:
        raise ValueError(f"unknown rate {rate!r}")
    return int(found[1])


def idle_by_stack(assembly: Assembly) -> dict[str, Idle]:
    templates = {name: getattr(assembly, name) for name in STACKS}
    return {name: idle(template) for name, template in templates.items() if template}
