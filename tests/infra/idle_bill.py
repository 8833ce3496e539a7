"""What a stage costs by the month while nothing happens, counted in its templates.

Prices of us-east-1 in dollars. What an account has for nothing (10 alarms, 3 dashboards, a million
requests to SQS) is not taken off by `dollars`; it holds once, for all of its stages.
"""

import re
from typing import Final, NamedTuple

from tests.infra.assembly import Assembly, Template, resources_of

ALARM_METRIC: Final = 0.10
"""An alarm on a computation is paid for by each metric that it reads."""
DASHBOARD: Final = 3.00
FREE_ALARM_METRICS: Final = 10
FREE_DASHBOARDS: Final = 3
FREE_DASHBOARD_METRICS: Final = 50
"""Of each of them: one with more is paid for, https://aws.amazon.com/cloudwatch/pricing/."""
POLLED_QUEUE: Final = 5 * 30 * 24 * 3_600 / 20 * 0.40e-6
"""Lambda asks an empty queue five at a time, for twenty seconds each:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""
SWEEP: Final = 5e-6
"""Half a second of 512 MB, one request, and twenty reads of half a unit."""


class Idle(NamedTuple):
    """`sweeps` are those of a month of 30 days."""

    alarms: int
    alarm_metrics: int
    dashboards: int
    polled_queues: int
    sweeps: int

    @property
    def dollars(self) -> float:
        return round(
            self.alarm_metrics * ALARM_METRIC
            + self.dashboards * DASHBOARD
            + self.polled_queues * POLLED_QUEUE
            + self.sweeps * SWEEP,
            2,
        )


def idle(template: Template) -> Idle:
    """Of one stack. Everything else in it is paid by use: see the test of the resource types."""
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
    )


def _minutes(rate: str) -> int:
    found = re.fullmatch(r"rate\((\d+) minutes?\)", rate)
    if not found:
        raise ValueError(f"unknown rate {rate!r}")
    return int(found[1])


def idle_by_stack(assembly: Assembly) -> dict[str, Idle]:
    stacks = ("data", "pipeline", "api", "observability", "web")
    templates = {name: getattr(assembly, name) for name in stacks}
    return {name: idle(template) for name, template in templates.items() if template}
