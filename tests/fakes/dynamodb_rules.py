"""What DynamoDB refuses, whatever the table holds."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.fakes import expressions
from tests.fakes.calls import client_error
from tests.fakes.expressions import InvalidExpression, Item, Value

ITEM_LIMIT = 400 * 1024
_PARTITION_KEYS = ("PK", "GSI1PK", "GSI2PK")
_SORT_KEYS = ("SK", "GSI1SK", "GSI2SK")
_KEY_BYTES = dict.fromkeys(_PARTITION_KEYS, 2048) | dict.fromkeys(_SORT_KEYS, 1024)


def check_item(operation: str, item: Item, size: int) -> None:
    if size > ITEM_LIMIT:
        raise client_error(operation, "ValidationException", "Item size has exceeded 400 KB")
    check_keys(operation, item)
    for value in item.values():
        _check_numbers(operation, value)


def check_keys(operation: str, attributes: Item) -> None:
    for name, limit in _KEY_BYTES.items():
        if name in attributes and not 0 < len(attributes[name].get("S", "").encode()) <= limit:
            raise client_error(operation, "ValidationException", f"{name} out of bounds")


def _check_numbers(operation: str, value: Value) -> None:
    ((kind, plain),) = value.items()
    if kind == "N":
        number = Decimal(plain)
        if not number.is_finite() or digits(number) > 38:
            raise client_error(operation, "ValidationException", "more than 38 digits")
        if number and not -130 <= number.adjusted() <= 125:
            raise client_error(operation, "ValidationException", "number out of range")
    parts: Sequence[Value] = plain if kind == "L" else list(plain.values()) if kind == "M" else ()
    for part in parts:
        _check_numbers(operation, part)


def digits(number: Decimal) -> int:
    """Without zeros at either end; normalize() would round to the context's precision first."""
    return len("".join(map(str, number.as_tuple().digits)).strip("0"))


def wrong_with_query(
    request: dict[str, Any],
    partition_name: str,
    key_names: Sequence[str],
    in_index: Sequence[str] | None,
) -> str | None:
    """Why a query is refused, or None. `in_index` are the attributes that its index includes."""
    first, last, partition = (
        request["ExpressionAttributeValues"][value] for value in (":first", ":last", ":pk")
    )
    after = request.get("ExclusiveStartKey", {partition_name: partition})
    projected, filtered = (
        set(named(request, f"{use}Expression")) for use in ("Projection", "Filter")
    )
    refusals = {
        "consistent read on an index": in_index is not None and request.get("ConsistentRead"),
        "not in the index": in_index is not None and projected - set(in_index),
        "filter on a key attribute": filtered & set(key_names),
        "empty bound": not first["S"],
        "bounds out of order": first["S"] > last["S"],
        "start key outside of the partition": after[partition_name] != partition,
        "limit below 1": request.get("Limit", 1) < 1,
        "defined but not used": _unused(request),
    }
    return next((reason for reason, holds in refusals.items() if holds), None)


def check_all_used(request: dict[str, Any]) -> None:
    if unused := _unused(request):
        raise InvalidExpression(f"defined but not used: {sorted(unused)}")


def _unused(request: dict[str, Any]) -> set[str]:
    names, values = definitions(request)
    texts = [text for name, text in request.items() if name.endswith("Expression")]
    return {*names, *values}.difference(*map(expressions.placeholders, texts))


def named(request: dict[str, Any], expression: str) -> list[str]:
    """The attributes whose `#names` an expression uses."""
    names, _ = definitions(request)
    used = expressions.placeholders(request[expression]) if expression in request else []
    return [names[placeholder] for placeholder in used if placeholder in names]


def definitions(request: dict[str, Any]) -> tuple[dict[str, str], dict[str, Value]]:
    return (
        request.get("ExpressionAttributeNames", {}),
        request.get("ExpressionAttributeValues", {}),
    )
