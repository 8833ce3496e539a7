"""What functions print, as CloudWatch reads it: metrics in embedded format, and lines of log."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Series(NamedTuple):
    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]


type Measured = Mapping[Series, list[float]]
"""The values of one period."""


def lines_of(printed: str) -> list[dict[str, Any]]:
    """Every line that was printed, each of which is a JSON object."""
    return [json.loads(text) for text in printed.splitlines()]


def measured_in(lines: Iterable[Mapping[str, Any]]) -> Measured:
    """All values that these lines publish, once for each of their sets of dimensions."""
    values: dict[Series, list[float]] = defaultdict(list)
    for line in lines:
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", ()):
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, line[name]) for name in names)
                for metric in directive["Metrics"]:
                    series = Series(directive["Namespace"], metric["Name"], dimensions)
                    given = line[metric["Name"]]
                    values[series] += given if isinstance(given, list) else [given]
    return values
