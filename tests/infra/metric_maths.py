"""An alarm as CloudWatch evaluates it, as far as ours need: statistics, maths, missing data."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.emf import Measured, Series
from tests.infra.assembly import Properties

_WORDS: Final = {"AND": "and", "OR": "or"}


def fires(alarm: Properties, periods: Sequence[Measured]) -> bool:
    """Whether these periods, the newest last, bring it into the state ALARM; those before the
    first had no data. All that it looks at must be red, unless it says how many."""
    looked_at: int = alarm["EvaluationPeriods"]
    newest = [*[{}] * looked_at, *periods][-looked_at:]
    red = sum(_breaches(alarm, value_of(alarm, measured)) for measured in newest)
    needed: int = alarm.get("DatapointsToAlarm", looked_at)
    return red >= needed


def value_of(alarm: Properties, measured: Measured) -> float | None:
    """What is compared with the threshold; None without data."""
    if "Metrics" not in alarm:
        return _statistic(alarm, alarm.get("Statistic", ""), measured)
    values: dict[str, float | None] = {}
    for query in alarm["Metrics"]:
        if "MetricStat" in query:
            stat = query["MetricStat"]
            values[query["Id"]] = _statistic(stat["Metric"], stat["Stat"], measured)
    expressions = [query["Expression"] for query in alarm["Metrics"] if "Expression" in query]
    (result,) = expressions or values
    return _computed(result, values)


def series_of(metric: Mapping[str, Any]) -> Series:
    """Names that only CloudFormation knows stand as in the template."""
    dimensions = frozenset(
        (each["Name"], value if isinstance(value := each["Value"], str) else json.dumps(value))
        for each in metric.get("Dimensions", ())
    )
    return Series(metric["Namespace"], metric["MetricName"], dimensions)


def period_of(alarm: Properties) -> int:
    """In seconds; of an alarm on several metrics, all of them have it."""
    if "Metrics" not in alarm:
        return int(alarm["Period"])
    (period,) = {q["MetricStat"]["Period"] for q in alarm["Metrics"] if "MetricStat" in q}
    return int(period)


def series_in(alarm: Properties) -> list[Series]:
    if "Metrics" not in alarm:
        return [series_of(alarm)]
    return [series_of(q["MetricStat"]["Metric"]) for q in alarm["Metrics"] if "MetricStat" in q]


def _breaches(alarm: Properties, value: float | None) -> bool:
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    if value is None:
        return bool(alarm["TreatMissingData"] == "breaching")
    return value > float(alarm["Threshold"])


def _statistic(metric: Mapping[str, Any], statistic: str, measured: Measured) -> float | None:
    values = measured.get(series_of(metric), [])
    if not values:
        return None
    match statistic:
        case "Sum":
            return math.fsum(values)
        case "Maximum":
            return max(values)
        case "Minimum":
            return min(values)
    raise ValueError(f"unknown statistic {statistic!r}")


def _computed(expression: str, values: Mapping[str, float | None]) -> float | None:
    """Without data where an operand has none that was not filled, and on division by zero."""
    python = re.sub(r"\b(AND|OR)\b", lambda word: _WORDS[word[0]], expression)
    functions = {
        "IF": lambda condition, yes, no: yes if condition else no,
        "FILL": lambda value, instead: instead if value is None else value,
    }
    try:
        return float(eval(python, {"__builtins__": {}}, {**functions, **values}))  # noqa: S307 - ours
    except (TypeError, ZeroDivisionError):
        return None
