"""From what a trajectory file holds to what the wire takes: ids, times, money, payloads."""

import hashlib
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from msgspec import Raw

from functions.core.model import EXACT
from runtally import json_text, wire

MADE_UP_START: Final = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z: when a run began whose file has no times."""

MADE_UP_DURATION: Final = 1_000_000_000
"""One second: how long a step took whose file does not say."""

_ATTOS = Decimal("1e-18")
_NOT_IN_RUN_ID = re.compile(r"[^A-Za-z0-9._-]")


class StepIds:
    """The step ids of one run: strictly increasing, and the same at every reading of the file."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._last = 0

    def next(self, at: int) -> str:
        """An id at `at` nanoseconds, or just behind the last one, which keeps the file's order."""
        self._last = max(at, self._last + 1)
        seed = f"{self._run_id}#{self._last}"
        return f"{self._last:019d}-{hashlib.sha256(seed.encode()).hexdigest()[:8]}"


def run_id(trajectory_format: str, label: str, content: bytes) -> str:
    """An id that a reader recognises, and that only this content has."""
    name = _NOT_IN_RUN_ID.sub("_", label)[:64]
    return f"{trajectory_format}:{name}-{hashlib.sha256(content).hexdigest()[:8]}"


def nanoseconds(seconds: Decimal) -> int:
    """Exact as far as the file's own digits go; anything below a nanosecond is cut off."""
    return int(EXACT.scaleb(seconds, 9))


def money(dollars: Decimal) -> str:
    """Written out, with the 18 decimals that fit the table: files print doubles with up to 20."""
    exponent = dollars.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -18:
        dollars = dollars.quantize(_ATTOS, rounding=ROUND_HALF_EVEN)
    return f"{dollars:f}"


def payload(records: Sequence[Raw]) -> Raw:
    """A step's records, token for token as in the file: one alone as it is, several as an array."""
    minified = [json_text.minify(bytes(record)) for record in records]
    return Raw(minified[0] if len(minified) == 1 else b"[" + b",".join(minified) + b"]")


def attributes(**values: wire.Scalar | Decimal) -> wire.Attributes:
    """Only what the file has. A decimal goes as text, digit for digit."""
    return {
        name: str(value) if isinstance(value, Decimal) else value
        for name, value in values.items()
        if value is not None
    }
