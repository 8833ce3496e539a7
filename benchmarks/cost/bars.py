"""What the cost of a million steps must not exceed, and whether it does."""

from collections.abc import Mapping
from typing import Any, Final

DEFAULTS: Final = "1,500 calls, 8 at once, SDK defaults"
BY_10: Final = "… packed by 10"
BY_25: Final = "… packed by 25"
SHORT: Final = "60 calls packed by 5"
SLOW: Final = "a step a second for 45 minutes, SDK defaults"
NO_COUNTERS: Final = "boto3, an item and an object a step"
"""A bar of its own: it counts nothing, so each question about a run means to read all of it."""

_DOLLARS: Final = {DEFAULTS: 1.75, BY_25: 1.00}
_WRITE_UNITS: Final = {BY_10: 1.15, SLOW: 1.30, SHORT: 2.0}
_TIMES_CHEAPER: Final = 6


def bars(
    ours: Mapping[str, dict[str, Any]], others: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Each with its figure and whether it holds: of what is counted, and with Lambda's time."""
    found = [
        _dollars(f"USD per million, {name}", most, ours[name]) for name, most in _DOLLARS.items()
    ]
    rivals = {
        name: each["counted_usd"]
        for name, each in others.items()
        if "not_here" not in each and name != NO_COUNTERS
    }
    best = [min(rivals, key=lambda name: rivals[name])] if rivals else []
    for other in [*best, *(name for name in others if name == NO_COUNTERS)]:
        most = round(others[other]["counted_usd"] / _TIMES_CHEAPER, 3)
        found += [
            _dollars(f"USD per million, {name}: a sixth of {other}", most, ours[name])
            for name in _DOLLARS
        ]
    for name, units in _WRITE_UNITS.items():
        figure = ours[name]["write_units_per_step"]
        bar = {"bar": units, "figure": figure, "holds": figure <= units}
        found.append({"name": f"write units a step, {name}", **bar})
    return found


def _dollars(name: str, most: float, found: Mapping[str, Any]) -> dict[str, Any]:
    figure, with_time = found["counted_usd"], found["usd_per_million"]
    return {
        "name": name,
        "bar": most,
        "figure": figure,
        "holds": figure <= most,
        "with_lambda_time": with_time,
        "holds_with_lambda_time": with_time <= most,
    }
