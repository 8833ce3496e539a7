"""From what an agent hands over to the fields of an event, so that ingest refuses nothing the
library sends.

A field that the wire format has no place for is left out with a warning that names it, and its name
is kept in the attribute `runtally.dropped`: a negative cost must not cost the step. The rules
themselves are those of `runtally.wire`, asked by decoding the event as ingest will.
"""

import decimal
import hashlib
import logging
import math
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeVar

import msgspec

from runtally import json_text, payloads, wire

DROPPED: Final = "runtally.dropped"
ROUNDED: Final = "runtally.rounded"

_Event = TypeVar("_Event", bound=wire.Event)

_log = logging.getLogger("runtally")
_SMALLEST = Decimal("1e-18")
_TOO_MUCH = Decimal("1e12")
_EXACT = decimal.Context(
    prec=64, rounding=decimal.ROUND_HALF_EVEN, traps=[decimal.InvalidOperation]
)
_PATH_END = re.compile(r"[.\[]")
_float_warned = False


class Fields:
    """The fields of one event as they come in: the last of a name counts, attributes add up."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._values: dict[str, object] = {}
        self._attributes: dict[str, wire.Scalar | list[wire.Scalar]] = {}
        self._notes: dict[str, list[wire.Scalar]] = {}

    def put(self, name: str, value: object) -> None:
        """Keep a value, in the form in which it travels; None leaves the field as it was."""
        if value is None:
            return
        try:
            if name == "attributes":
                self._attributes.update(attributes(value))
            else:
                self._values[name] = kept = _FORMS.get(name, text)(value)
                if name in _MONEY and kept != value and Decimal(str(kept)) != _decimal(value):
                    self.note(ROUNDED, name)
        except Exception as error:  # noqa: BLE001 - the agent's own objects; never its problem
            self._drop(name, str(error))

    def note(self, attribute: str, value: str) -> None:
        """Say in an attribute of the event that it is not quite what the agent handed over."""
        noted = self._notes.setdefault(attribute, [])
        if value not in noted:
            noted.append(value)

    def event(self, of: type[_Event], /, **required: object) -> _Event:
        """The event, valid by the wire format; `required` are the library's own values, used where
        the agent gave none that holds. Raises Rejected only when one of those is refused.
        """
        while True:
            fields: dict[str, object] = {**required, **self._values}
            if self._attributes or self._notes:
                fields["attributes"] = {**self._attributes, **self._notes}
            try:
                # To this kind alone: what a union takes is worked out anew at every conversion.
                event = msgspec.convert(fields, of)
            except msgspec.ValidationError as error:
                rejected = wire.rejected(str(error), "")
                name = _PATH_END.split(rejected.field)[0]
                if name not in self._values:
                    raise rejected from None
                del self._values[name]
                self._drop(name, rejected.detail)
            else:
                return event

    def _drop(self, name: str, why: str) -> None:
        _log.warning("runtally: %.200s is recorded without %s: %.200s", self._what, name, why)
        self.note(DROPPED, name)


def text(value: object) -> str:
    """A string that has an encoding: lone surrogates become U+FFFD. Never raises."""
    written = value if type(value) is str else payloads.described(value)
    return written if written.isascii() else json_text.utf8(written).decode()


def run_id_of(given: str) -> str:
    """The id itself, or 32 hex digits derived from it where the wire format has no place for it."""
    try:
        return msgspec.convert(given, wire.RunId)
    except msgspec.ValidationError:
        return hashlib.sha256(text(given).encode()).hexdigest()[:32]


def result_text(value: object) -> str | None:
    """A result as it travels: text as it is, all else JSON-encoded; none for None. Never raises."""
    if value is None:
        return None
    return text(value if isinstance(value, str) else payloads.encode(value).decode())


def money(value: object) -> str:
    """US dollars written out, rounded half-even to 18 decimals. Raises ValueError when it is no
    amount.

    A float stands for the shortest decimal that Python shows for it: the amount that somebody
    typed. Sums of floats carry their noise along, hence the warning.
    """
    global _float_warned  # noqa: PLW0603 - one warning a process is enough
    if isinstance(value, float) and not _float_warned:
        _float_warned = True
        _log.warning("runtally: cost_usd as float is inexact; hand over a Decimal or a string")
    amount = _decimal(value)
    if not amount.is_finite() or amount < 0 or amount >= _TOO_MUCH:
        raise ValueError(f"{value!r} is no amount from 0 to below 10^12")
    if amount.is_zero():
        return "0"
    if amount < 1 or amount != amount.to_integral_value():
        amount = amount.quantize(_SMALLEST, context=_EXACT).normalize(_EXACT)
    return format(amount, "f")


def _decimal(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (Decimal, int, float, str)):
        raise TypeError(f"a cost is a Decimal, a string or an int, not {type(value).__name__}")
    try:
        return Decimal(repr(float(value)) if isinstance(value, float) else value)
    except decimal.InvalidOperation:
        raise ValueError(f"{value!r} is no decimal number") from None


def count(value: object) -> int:
    """Any kind of integer, numpy's too. Raises TypeError for what is none, `True` included."""
    if isinstance(value, bool):
        raise TypeError("a boolean is no count")
    return operator.index(value)  # type: ignore[arg-type]  # that is the question


def attributes(value: object) -> dict[str, wire.Scalar | list[wire.Scalar]]:
    """Attributes as the wire has them: scalars and lists of those, all else as JSON text."""
    if not isinstance(value, (dict, Mapping)):  # dict first: most are, and the other is slow
        raise TypeError(f"attributes are a mapping, not {type(value).__name__}")
    return {text(key): _attribute(entry) for key, entry in list(value.items())}


def _attribute(value: object) -> wire.Scalar | list[wire.Scalar]:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, (list, tuple)):
        return [_scalar(entry) for entry in value]
    return _scalar(value)


def _scalar(value: object) -> wire.Scalar:
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    written = payloads.encode(value)
    if written.startswith(b'"'):
        return msgspec.json.decode(written, type=str)
    return written.decode()


_MONEY: Final = frozenset({"cost_usd", "cost_computed_usd"})
_FORMS: Final[dict[str, Callable[[object], object]]] = {
    **dict.fromkeys(_MONEY, money),
    **dict.fromkeys(
        (
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
            "stale_after_s",
        ),
        count,
    ),
}
