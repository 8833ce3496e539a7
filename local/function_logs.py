"""What the functions wrote to their logs: the metrics among the lines."""

import json
from collections.abc import Iterator
from decimal import Decimal

from local.stage import Stage


def sum_of_metric(stage: Stage, name: str) -> Decimal:
    """A metric summed over all calls of all functions (embedded metric format)."""
    total = Decimal(0)
    for line in log_lines(stage):
        if '"_aws"' in line:
            value = json.loads(line, parse_float=Decimal).get(name, 0)
            total += sum(value, start=Decimal(0)) if isinstance(value, list) else value
    return total


def log_lines(stage: Stage) -> Iterator[str]:
    """Every line of every function's log, function by function."""
    logs = stage.client("logs")
    for function in stage.functions:
        group = _log_group(stage, function)
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
            for event in page["events"]:
                yield event["message"].rstrip()


def _log_group(stage: Stage, function: str) -> str:
    configuration = stage.client("lambda").get_function_configuration(FunctionName=function)
    group: str = configuration["LoggingConfig"]["LogGroup"]
    return group
