"""DynamoDB's condition and update expressions, as far as the adapters use them, on typed values.

A small recursive descent parser over attribute values in DynamoDB's own notation (`{"S": "a"}`).
What is not known is an error, never ignored: a fake that accepts more than AWS proves nothing.
"""

import re
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from typing import Any

type Value = dict[str, Any]
type Item = dict[str, Value]

_TOKEN = re.compile(r"\s*(#\w+|:\w+|\w+|<=|>=|<>|[()=<>,.+\-])")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
NUMBERS = Context(prec=38, traps=[Inexact, InvalidOperation], Emax=125, Emin=-130)


class InvalidExpression(ValueError):  # noqa: N818
    """What AWS answers with a ValidationException."""


class _Reader:
    def __init__(self, text: str, names: dict[str, str], values: dict[str, Value]) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.names = names
        self.values = values

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token.upper() != expected):
            raise InvalidExpression(f"expected {expected or 'more'}, got {token!r}")
        self.at += 1
        return token

    def accept(self, expected: str) -> bool:
        if self.peek().upper() == expected:
            self.at += 1
            return True
        return False

    def path(self) -> list[str]:
        parts = [self._name()]
        while self.accept("."):
            parts.append(self._name())
        return parts

    def value(self) -> Value:
        token = self.take()
        if token not in self.values:
            raise InvalidExpression(f"value {token} is not defined")
        return self.values[token]

    def _name(self) -> str:
        token = self.take()
        if not token.startswith("#"):
            if token not in {"PK", "SK"}:
                raise InvalidExpression(f"{token} may be a reserved word: write #{token}")
            return token
        if token not in self.names:
            raise InvalidExpression(f"name {token} is not defined")
        return self.names[token]

    def finish(self) -> None:
        if self.peek():
            raise InvalidExpression(f"unexpected {self.peek()!r}")


@cache
def _tokens(text: str) -> tuple[str, ...]:
    tokens = tuple(_TOKEN.findall(text))
    if "".join(tokens) != "".join(text.split()):
        raise InvalidExpression(f"cannot read {text!r}")
    return tokens


def placeholders(text: str) -> list[str]:
    """The `#names` and `:values` that an expression uses, in its order."""
    return [token for token in _tokens(text) if token[0] in "#:"]


def holds(text: str, item: Item, names: dict[str, str], values: dict[str, Value]) -> bool:
    """Whether a condition holds for an item (empty when there is none)."""
    reader = _Reader(text, names, values)
    result = _any(reader, item)
    reader.finish()
    return result


def _any(reader: _Reader, item: Item) -> bool:
    result = _all(reader, item)
    while reader.accept("OR"):
        other = _all(reader, item)
        result = result or other
    return result


def _all(reader: _Reader, item: Item) -> bool:
    result = _one(reader, item)
    while reader.accept("AND"):
        other = _one(reader, item)
        result = result and other
    return result


def _one(reader: _Reader, item: Item) -> bool:
    if reader.accept("NOT"):
        return not _one(reader, item)
    if reader.accept("("):
        result = _any(reader, item)
        reader.take(")")
        return result
    function = reader.peek()
    if function in {"attribute_exists", "attribute_not_exists"}:
        reader.take()
        reader.take("(")
        there = _find(item, reader.path()) is not None
        reader.take(")")
        return there == (function == "attribute_exists")
    if function == "begins_with":
        reader.take()
        reader.take("(")
        value = _find(item, reader.path())
        reader.take(",")
        prefix = reader.value()
        reader.take(")")
        return (
            value is not None
            and _same_kind(value, prefix)
            and _plain(value).startswith(_plain(prefix))
        )
    left = _operand(reader, item)
    operator = reader.take()
    if operator not in _COMPARE:
        raise InvalidExpression(f"unknown operator {operator!r}")
    right = _operand(reader, item)
    if left is None or right is None or not _same_kind(left, right):
        return operator == "<>" and left != right
    return _COMPARE[operator](_plain(left), _plain(right))


def _operand(reader: _Reader, item: Item) -> Value | None:
    if reader.peek() == "size":
        reader.take()
        reader.take("(")
        value = _find(item, reader.path())
        reader.take(")")
        return None if value is None else {"N": str(_length(value))}
    if reader.peek().startswith(":"):
        return reader.value()
    return _find(item, reader.path())


def updated(text: str, item: Item, names: dict[str, str], values: dict[str, Value]) -> Item:
    """The item as an update leaves it; every right side sees the item as it was before."""
    reader = _Reader(text, names, values)
    new = dict(item)
    clauses: set[str] = set()
    written = {"PK", "SK"}  # the key never changes
    while reader.peek():
        clause = _once(reader.take().upper(), clauses)
        while True:
            (name,) = reader.path()
            _once(name, written)
            if clause == "SET":
                reader.take("=")
                new[name] = _set_value(reader, item)
            elif clause == "ADD":
                new[name] = _add(item.get(name), reader.value())
            elif clause == "REMOVE":
                new.pop(name, None)
            else:
                raise InvalidExpression(f"unknown clause {clause!r}")
            if not reader.accept(","):
                break
    return new


def _once(name: str, seen: set[str]) -> str:
    if name in seen:
        raise InvalidExpression(f"{name} may not be written here")
    seen.add(name)
    return name


def _set_value(reader: _Reader, item: Item) -> Value:
    if reader.accept("LIST_APPEND"):
        reader.take("(")
        first = _set_value(reader, item)
        reader.take(",")
        second = _set_value(reader, item)
        reader.take(")")
        if not first.keys() == second.keys() == {"L"}:
            raise InvalidExpression("list_append takes two lists")
        return {"L": [*first["L"], *second["L"]]}
    if reader.accept("IF_NOT_EXISTS"):
        reader.take("(")
        there = _find(item, reader.path())
        reader.take(",")
        default = _set_value(reader, item)
        reader.take(")")
        return default if there is None else there
    value = _operand(reader, item)
    if value is None:
        raise InvalidExpression("the provided expression refers to an attribute that is not there")
    return value


def _add(there: Value | None, value: Value) -> Value:
    there = there or {"N": "0"}
    if not there.keys() == value.keys() == {"N"}:
        raise InvalidExpression("ADD takes two numbers")
    total = NUMBERS.add(Decimal(there["N"]), Decimal(value["N"]))
    return {"N": format(total.normalize(NUMBERS), "f")}


def _find(item: Item, path: list[str]) -> Value | None:
    value: Value | None = item.get(path[0])
    for part in path[1:]:
        if value is None or "M" not in value:
            return None
        value = value["M"].get(part)
    return value


def _same_kind(one: Value, other: Value) -> bool:
    return one.keys() == other.keys()


def _plain(value: Value) -> Any:
    ((kind, plain),) = value.items()
    if kind == "N":
        return Decimal(plain)
    return plain.encode() if kind == "S" else plain  # strings sort as UTF-8 bytes


def _length(value: Value) -> int:
    ((kind, plain),) = value.items()
    if kind not in {"S", "B", "L", "M"}:
        raise InvalidExpression(f"size() of {kind}")
    return len(plain.encode()) if kind == "S" else len(plain)
