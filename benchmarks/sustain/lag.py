"""How long after its end a step was stored, and counted: what the stage itself says."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from functions.adapters.dynamodb import DynamoDBTable
from functions.core import keys
from functions.core.keys import RunRef
from local import function_logs
from local.stage import Stage

_MINUTE_NS: Final = 60 * 10**9


class Lag(NamedTuple):
    """`at` is nanoseconds since the epoch."""

    at: int
    milliseconds: float


def lag_of_storing(stage: Stage, refs: Sequence[RunRef]) -> Iterator[Lag]:
    """Of every step, by its end: the time in the Recorder, up to five seconds, is in it."""
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    for ref in refs:
        steps = table.query(keys.run_partition(ref), keys.STEP_PREFIX, ("ended_at", "stored_at"))
        for step in steps:
            ended, stored = int(step["ended_at"]), int(step["stored_at"])
            yield Lag(ended, (stored - ended) / 1e6)


def lag_of_counting(stage: Stage) -> Iterator[Lag]:
    """Of the newest step of every batch, by the time of counting: the metric CountLag."""
    for line in function_logs.log_lines(stage):
        if '"CountLag"' in line:
            metrics = json.loads(line)
            for lag in metrics["CountLag"]:
                yield Lag(metrics["_aws"]["Timestamp"] * 10**6, lag)


def spread_by_minute(lags: Iterable[Lag], began_ns: int) -> list[dict[str, Any]]:
    minutes: dict[int, list[float]] = {}
    for lag in lags:
        minutes.setdefault((lag.at - began_ns) // _MINUTE_NS, []).append(lag.milliseconds)
    return [
        {"minute": minute, "p50": _quantile(found, 50), "p95": _quantile(found, 95)}
        for minute, found in sorted(minutes.items())
    ]


def _quantile(found: list[float], percent: int) -> int:
    return round(sorted(found)[min(len(found) - 1, len(found) * percent // 100)])
