"""When somebody has to look at the cache that workers share, in a stage that has one."""

from collections.abc import Iterator
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch

from cdk.alarms import Watch
from cdk.coordination_stack import cache_name
from cdk.measures import NOW, Statistic, summed
from cdk.settings import StageSettings

_NEARLY_FULL_PERCENT: Final = 75
"""As AWS advises: https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/Scaling.html"""
_GB: Final = 10**9


def cache_watches(settings: StageSettings) -> Iterator[Watch]:
    if not settings.coordination:
        return
    yield Watch(
        "CacheEvictions",
        _of_cache(settings, "Evictions"),
        "the coordination cache is full, and what runs shared was evicted",
        "cache-evictions",
    )
    yield Watch(
        "CacheFilling",
        _of_cache(settings, "BytesUsedForCache", "Maximum"),
        f"over {_NEARLY_FULL_PERCENT} % of what the coordination cache may store is used",
        "cache-filling",
        above=settings.coordination.max_gb * _GB * _NEARLY_FULL_PERCENT / 100,
        periods=2,
    )
    yield Watch(
        "CacheThrottled",
        _of_cache(settings, "ThrottledCmds"),
        "commands to the coordination cache are throttled",
        "cache-throttled",
        periods=3,
    )
    yield Watch(
        "CacheSignInFailures",
        summed(
            [
                _of_cache(settings, name)
                for name in ("AuthenticationFailures", "IamAuthenticationThrottling")
            ],
            "failed sign-ins",
        ),
        "somebody cannot sign in to the coordination cache",
        "cache-sign-in-failures",
    )


def _of_cache(
    settings: StageSettings, name: str, statistic: Statistic = "Sum"
) -> cloudwatch.Metric:
    """Of a serverless cache, whose only dimension is `clusterId`, spelled so:
    https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/serverless-metrics-events-redis.html"""
    return cloudwatch.Metric(
        namespace="AWS/ElastiCache",
        metric_name=name,
        dimensions_map={"clusterId": cache_name(settings)},
        statistic=statistic,
        period=NOW,
    )
