"""Links that open one object, or one slice of it, without a key."""

from typing import Final

from functions.api import shapes
from functions.core import times

LINK_S: Final = 900
"""A presigned URL also dies with the role session that signed it: longer would promise too much."""


def link(url: str, now_ns: int, byte_range: str | None = None) -> shapes.Link:
    """A URL signed just now, for LINK_S. With a range it gives gzipped JSON, and takes a header."""
    return shapes.Link(
        url=url,
        expires_at=times.text_of(now_ns + LINK_S * times.SECOND),
        headers=None if byte_range is None else {"Range": byte_range},
        content_encoding=None if byte_range is None else "gzip",
    )
