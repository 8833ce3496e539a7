"""What a deployment costs by the month, by how many steps a second it records, all day long.

Its steps come as those of a measured run did, at the SDK's defaults. Storage is that of a stage
which is as old as its retention. Free tiers are not taken off. More traffic fills Lambda's batches
better than this says, which assumes a batch a message.
"""

from decimal import Decimal
from functools import cache
from typing import Any, Final

from benchmarks import aws_prices, logging
from benchmarks.cost.usage import PRICES, Usage
from tests.infra.assembly import with_all_options
from tests.infra.idle_bill import idle_by_stack

STEPS_PER_SECOND: Final = (0, 1, 100, 10_000)
RETENTION_DAYS: Final = (30, 365)
SECONDS: Final = 30 * 24 * 3_600


def monthly(usage: Usage, steps_per_second: int) -> dict[str, Any]:
    """Dollars by item; `total` for each retention, with what stands there all the time."""
    steps = steps_per_second * SECONDS
    items = {name: _of(usage, name, steps) for name in usage.counted if usage.counted[name]}
    gb_seconds = Decimal(str(sum(usage.gb_seconds.values()))) * steps / usage.steps
    items["lambda_time, modelled"] = gb_seconds * aws_prices.LAMBDA_GB_SECOND
    items["logs"] = _logs_usd_per_million(usage) * steps / aws_prices.MILLION
    items["custom_metrics, at most"] = _custom_metrics() if steps else Decimal(0)
    items["idle: alarms, dashboards, polling, sweeps"] = _idle()
    storage = {days: _storage(usage, steps_per_second, days) for days in RETENTION_DAYS}
    return {
        "items": _dollars(items),
        "storage": {f"{days} days": _dollars(each) for days, each in storage.items()},
        "total": _dollars(
            {f"{days} days": sum([*items.values(), *each.values()], Decimal(0))
             for days, each in storage.items()}
        ),
    }  # fmt: skip


def _of(usage: Usage, name: str, steps: int) -> Decimal:
    return Decimal(str(usage.counted[name])) * PRICES[name] * steps / usage.steps


def _storage(usage: Usage, steps_per_second: int, days: int) -> dict[str, Decimal]:
    gigabytes = Decimal(steps_per_second * 24 * 3_600 * days) / 10**9
    table = gigabytes * usage.seen["table_bytes_a_step"]
    return {
        "objects": gigabytes * usage.seen["object_bytes_a_step"] * aws_prices.S3_GB_MONTH,
        "table": table * aws_prices.DYNAMODB_GB_MONTH,
        "point-in-time recovery": table * aws_prices.DYNAMODB_BACKUP_GB_MONTH,
    }


def _logs_usd_per_million(usage: Usage) -> Decimal:
    return _logs(usage.steps, max(1, round(usage.seen["steps_a_message"])))


@cache
def _logs(calls: int, packed_by: int) -> Decimal:
    return Decimal(str(logging.cost_of(logging.Shape(calls, packed_by, 1)).logs))


@cache
def _custom_metrics() -> Decimal:
    return logging.custom_metrics() * aws_prices.CUSTOM_METRIC_MONTH


@cache
def _idle() -> Decimal:
    return Decimal(str(sum(each.dollars for each in idle_by_stack(with_all_options()).values())))


def _dollars(items: dict[str, Decimal]) -> dict[str, float]:
    return {name: float(round(usd, 2)) for name, usd in items.items()}
