"""Times as people and JSON read them: RFC 3339, UTC, always nine decimals."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

SECOND: Final = 1_000_000_000
_LATEST: Final = 2**63 - 1
_RFC3339: Final = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


def text_of(nanoseconds: int) -> str:
    """`2026-11-30T02:46:01.000000001Z`: no digit of a time is lost, so that it can be sent back."""
    seconds, fraction = divmod(nanoseconds, SECOND)
    return f"{_text_of_seconds(seconds)}.{fraction:09d}Z"


def parse(text: str) -> int:
    """Nanoseconds since the epoch. Raises ValueError for anything but RFC 3339 with a zone."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("not a time such as 2026-11-30T02:46:01Z")
    try:
        whole = datetime.fromisoformat(f"{match['seconds']}{match['zone']}".upper())
    except ValueError as error:
        raise ValueError(f"not a time: {error}") from None
    seconds = int((whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    nanoseconds = seconds * SECOND + int((match["fraction"] or "0").ljust(9, "0"))
    if not 0 <= nanoseconds <= _LATEST:
        raise ValueError("not between the years 1970 and 2262")
    return nanoseconds


@lru_cache(maxsize=4096)
def _text_of_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
