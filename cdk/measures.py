"""CloudWatch metrics by name: our own, and sums of several."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb

from cdk.settings import StageSettings
from functions.core import keys

NOW: Final = Duration.minutes(5)
WHILE: Final = Duration.minutes(15)
"""For what means nothing in a few minutes: rates, and what must fit together in one period."""

Statistic = Literal["Sum", "Maximum", "Minimum", "Average", "p50", "p95"]


def ours(
    settings: StageSettings, service: str, name: str, statistic: Statistic = "Sum"
) -> cloudwatch.Metric:
    """A metric that one of our functions publishes."""
    return cloudwatch.Metric(
        namespace=settings.metrics_namespace,
        metric_name=name,
        dimensions_map={"service": service},
        statistic=statistic,
        label=f"{service} {name}",
        period=NOW,
    )


def throttled_requests(table: dynamodb.TableV2) -> list[cloudwatch.Metric]:
    """Reads and writes that DynamoDB throttled, of the table and of each index apart: what it
    counts for one says nothing of the others."""
    places: dict[str, dict[str, str]] = {
        "table": {},
        **{name: {"GlobalSecondaryIndexName": name} for name in (keys.BY_TENANT, keys.OPEN_RUNS)},
    }
    return [
        cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=f"{kind}ThrottleEvents",
            dimensions_map={"TableName": table.table_name, **dimensions},
            statistic="Sum",
            label=f"{place} {kind}ThrottleEvents",
            period=NOW,
        )
        for place, dimensions in places.items()
        for kind in ("Read", "Write")
    ]


def computed(
    expression: str,
    metrics: Mapping[str, cloudwatch.IMetric],
    label: str,
    period: Duration = NOW,
) -> cloudwatch.MathExpression:
    """CloudWatch's metric maths over metrics by the names that the expression gives them."""
    return cloudwatch.MathExpression(
        expression=expression, using_metrics=dict(metrics), label=label, period=period
    )


def summed(
    metrics: Sequence[cloudwatch.IMetric], label: str, period: Duration = NOW
) -> cloudwatch.MathExpression:
    """Those without data count as nothing."""
    names = [f"m{number}" for number in range(len(metrics))]
    expression = " + ".join(f"FILL({name}, 0)" for name in names)
    return computed(expression, dict(zip(names, metrics, strict=True)), label, period)
