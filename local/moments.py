"""Times as people write and read them: `2h`, `3d`, local time, how long ago."""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from cyclopts import Parameter, Token

from functions.core import times

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(rf"(?P<number>\d{{1,6}})(?P<unit>[{''.join(_UNITS)}])", re.ASCII)


def moment(text: str, now_ns: int) -> str:
    """RFC 3339 for `2h` (ago) or for what is RFC 3339 already. Raises ValueError."""
    if (match := _AGO.fullmatch(text)) is None:
        return times.text_of(times.parse(text))
    ago_s = int(match["number"]) * _UNITS[match["unit"]]
    return times.text_of(max(0, now_ns - ago_s * times.SECOND))


def _convert(_: Any, tokens: Sequence[Token]) -> str:
    try:
        return moment(tokens[0].value, time.time_ns())
    except ValueError:
        raise ValueError("write 30m, 2h, 3d, or a time such as 2026-11-30T02:46:01Z") from None


Since = Annotated[
    str | None,
    Parameter(converter=_convert, help="Only runs that started since: 30m, 2h, 3d, or RFC 3339."),
]
Until = Annotated[
    str | None, Parameter(converter=_convert, help="Only runs that started before, likewise.")
]


def local_time(text: str) -> str:
    """An API time in this machine's zone, to the second."""
    at = datetime.fromtimestamp(times.parse(text) // times.SECOND, UTC).astimezone()
    return at.strftime("%Y-%m-%d %H:%M:%S")


def ago(text: str, now_ns: int) -> str:
    """How long ago an API time was, in its largest unit: `3 min ago`."""
    return f"{_largest_unit(max(0, now_ns - times.parse(text)) // times.SECOND)} ago"


def elapsed(started: str, ended: str | None, now_ns: int) -> str:
    """From one API time to another, or to now: `250 ms`, `3 min 20 s`."""
    until = now_ns if ended is None else times.parse(ended)
    return duration(max(0, until - times.parse(started)) / times.SECOND)


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1_000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _largest_unit(seconds: int) -> str:
    for limit, unit, name in ((60, 1, "s"), (3_600, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // unit} {name}"
    return f"{seconds // 86_400} d"
