"""Lambda's event filter patterns, written from AWS's description of them and not from our filters.

A record passes a mapping when it matches any of its filters. In a pattern an object must match key
by key; a list holds alternatives for a leaf. An operator that is not named here is an error, not a
mismatch. https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
"""

from collections.abc import Iterable, Mapping
from typing import Any

_ABSENT = object()


def passes(record: Mapping[str, Any], patterns: Iterable[Mapping[str, Any]]) -> bool:
    """Whether Lambda would hand this record to the function."""
    return any(_matches(pattern, record) for pattern in patterns)


def _matches(pattern: Mapping[str, Any], value: Any) -> bool:
    """`value` may be no object at all: then nothing is present in it."""
    inside = value if isinstance(value, Mapping) else {}
    return all(_matches_key(rule, inside.get(key, _ABSENT)) for key, rule in pattern.items())


def _matches_key(rule: Any, value: Any) -> bool:
    if isinstance(rule, Mapping):
        return _matches(rule, value)
    if isinstance(rule, list):
        return any(_matches_leaf(alternative, value) for alternative in rule)
    raise ValueError(f"a pattern holds objects and lists, not {rule!r}")


def _matches_leaf(alternative: Any, value: Any) -> bool:
    if not isinstance(alternative, Mapping):
        # Compared as JSON text: true is not 1, and 300 is not 300.0.
        return type(alternative) is type(value) and alternative == value
    ((operator, operand),) = alternative.items()
    match operator:
        case "prefix":
            return isinstance(value, str) and value.startswith(operand)
        case "suffix":
            return isinstance(value, str) and value.endswith(operand)
        case "equals-ignore-case":
            return isinstance(value, str) and value.casefold() == operand.casefold()
        case "anything-but":
            excluded = operand if isinstance(operand, list) else [operand]
            return value is not _ABSENT and value not in excluded
        case "exists":
            is_leaf = value is not _ABSENT and not isinstance(value, Mapping)
            return is_leaf is operand
    raise ValueError(f"no operator {operator!r} in event filters")
