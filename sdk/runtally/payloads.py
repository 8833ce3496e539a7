"""Any Python object as minified JSON that every strict parser takes. Never raises.

What JSON has no word for becomes what a reader would expect: NaN and Infinity strings, bytes
`{"base64": …}`, dates ISO 8601, Decimal a string, sets sorted lists, objects their fields, anything
else its `str()`. Lone surrogates become U+FFFD, a circular reference `"<circular reference>"`, an
integer too long for Python to write out a hexadecimal string, and what nests deeper than
`json_text.MAX_DEPTH` one string that holds its text.
"""

import base64
import dataclasses
import datetime
import enum
import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from runtally import json_text

_log = logging.getLogger("runtally")

_DEEPEST: Final = 10_000
"""Levels after which an object counts as endless: its fields may be made anew at each look."""
_SCALARS = (str, int, float, type(None))


def encode(value: object) -> bytes:
    """The payload's bytes. `msgspec.Raw` counts as JSON text and keeps every token as written."""
    try:
        if isinstance(value, msgspec.Raw):
            return _mended(bytes(value))
        text = _encode_plain(value)
    except Exception:  # noqa: BLE001 - any `__str__`, property or model of the agent's may run here
        text = _encode_anything(value)
    return json_text.as_string(text) if json_text.deeper_than(text) else text


def _encode_plain(value: object) -> bytes:
    return json_text.utf8(_plain_encoder.encode(value))


def _mended(text: bytes) -> bytes:
    try:
        mended = json_text.mend_value(text)
        return json_text.minify(mended)
    except (msgspec.DecodeError, RecursionError):
        return json_text.as_string(text)  # no JSON after all: keep it as the text that it is


def _encode_anything(value: object) -> bytes:
    try:
        return json_text.utf8("".join(_tokens(value)))
    except Exception:  # noqa: BLE001 - as above
        _log.exception("runtally: a payload of type %s could not be written", type(value).__name__)
        return json_text.as_string(f"<{type(value).__name__}>".encode())


def _as_json(value: object) -> object:
    """One step from any object towards dict, list, str, int, float, bool or None."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    if isinstance(value, type):
        return str(value)
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    for name in ("model_dump", "tolist"):  # pydantic and its kin; numpy
        if callable(method := getattr(value, name, None)):
            return method()
    return str(value)


_CONVERSIONS: Final[tuple[tuple[tuple[type, ...], Callable[[Any], object]], ...]] = (
    ((bytes, bytearray, memoryview), lambda v: {"base64": base64.b64encode(v).decode("ascii")}),
    ((enum.Enum,), lambda v: v.value),
    ((datetime.date, datetime.time), lambda v: v.isoformat()),
    ((Mapping,), dict),
    ((set, frozenset), lambda v: sorted(v, key=repr)),
    ((msgspec.Struct,), msgspec.structs.asdict),
    ((msgspec.Raw,), msgspec.json.decode),
)

_plain_encoder = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_json
)


class _Container(NamedTuple):
    source: object  # held, so that no other object can take its identity meanwhile
    children: Iterator[tuple[str, object]]
    end: str


def _tokens(root: object) -> Iterator[str]:
    """The slow way, for what the standard encoder refuses. A stack of its own instead of recursion,
    since the nesting may be deeper than Python's.
    """
    stack = [_Container(None, iter([("", root)]), "")]
    path: set[int] = set()
    first = True
    while stack:
        entry = next(stack[-1].children, None)
        if entry is None:
            closed = stack.pop()
            path.discard(id(closed.source))
            yield closed.end
            first = False
            continue
        key, child = entry
        if not first:
            yield ","
        yield key
        node = _resolve(child)
        first = False
        if isinstance(node, str):
            yield node
        elif id(child) in path:
            yield '"<circular reference>"'
        elif len(stack) > _DEEPEST:
            yield '"<nested without end>"'
        else:
            path.add(id(child))
            stack.append(_open(child, node))
            yield "{" if isinstance(node, dict) else "["
            first = True


def _resolve(value: object) -> str | dict[object, object] | list[object] | tuple[object, ...]:
    """A scalar as its JSON text, a container as it is, anything else as what it converts to."""
    for _ in range(8):  # an Enum of a dataclass of …: a chain that goes on is not going anywhere
        if isinstance(value, _SCALARS):
            return _scalar(value)
        if isinstance(value, (dict, list, tuple)):
            return value
        try:
            value = _as_json(value)
        except Exception:  # noqa: BLE001 - the agent's code; the rest is still good
            value = described(value)
    return _scalar(described(value))


def described(value: object) -> str:
    """Its `str()`, or its type where even that fails. Never raises."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}>"


def _scalar(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # past 4,300 digits Python refuses decimal, whose cost grows with the square
        return f'"{value:#x}"'


def _open(
    source: object, node: dict[object, object] | list[object] | tuple[object, ...]
) -> _Container:
    # Copies first: another thread of the agent's may be changing the original.
    if isinstance(node, dict):
        pairs = ((f"{_scalar(_key(key))}:", child) for key, child in list(node.items()))
        return _Container(source, pairs, "}")
    return _Container(source, (("", child) for child in list(node)), "]")


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, (int, float, type(None))):
        return _scalar(key).strip('"')
    return str(key.value) if isinstance(key, enum.Enum) else described(key)
