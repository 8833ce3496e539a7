"""Answers with rows: as many rows as fit a Lambda response and the time there is, then a cursor."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from functions.core.errors import Rejected

RESPONSE_LIMIT_BYTES: Final = 5_500_000
"""Lambda's limit is 6,291,556 bytes, and binary bodies travel as base64: four bytes for three."""
BODY_LIMIT_BYTES: Final = RESPONSE_LIMIT_BYTES * 3 // 4
_TAIL_BYTES: Final = 1_024
_PIECE_BYTES: Final = 32_768
_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 6
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Row:
    """One member of the list, and the cursor with which the list goes on after it."""

    value: msgspec.Struct
    cursor: str


@dataclass(frozen=True, slots=True)
class Page:
    """An object whose last members are a list of `rows`, under `name`, and `next`.

    `rest`, asked when the rows have come to their end, is the cursor for what they left out.
    """

    head: msgspec.Struct | None
    name: str
    rows: Iterator[Row]
    rest: Callable[[], str | None] = lambda: None


def write(page: Page, *, gzipped: bool, late: Callable[[], bool] = lambda: False) -> bytes:
    """The page as JSON, gzipped or not, of at most BODY_LIMIT_BYTES; at least one row is in it.

    `late` ends it early: what follows is then left to the next page.
    """
    body = _Body(gzipped)
    body.write(_opening(page))
    cursor: str | None = None
    separator = b""
    for row in page.rows:
        text = _encode(row.value)
        if cursor is not None and (not body.has_room(len(text) + 1) or late()):
            break
        body.write(separator + text)
        separator = b","
        cursor = row.cursor
    else:
        cursor = page.rest()
    body.write(b"]" if cursor is None else b'],"next":' + _encode(cursor))
    body.write(b"}")
    return body.finish()


def gzip(content: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return compressor.compress(content) + compressor.flush()


def gunzip(content: bytes, limit: int) -> bytes:
    """At most `limit` bytes and one more, whatever it claims to hold; so too large stays visible.

    Raises Rejected for what is cut short or no gzip.
    """
    decompressor = zlib.decompressobj(_GZIP)
    try:
        inflated = decompressor.decompress(content, limit + 1)
    except zlib.error as error:
        raise Rejected("not_json", "", f"no gzip: {error}") from None
    if not decompressor.eof and len(inflated) <= limit:
        raise Rejected("not_json", "", "the gzipped body is cut short")
    if decompressor.unused_data:
        raise Rejected("not_json", "", "one gzip member, and nothing after it, is a body")
    return inflated


def _opening(page: Page) -> bytes:
    name = _encode(page.name) + b":["
    head = b"{}" if page.head is None else _encode(page.head)
    return head[:-1] + (b"" if head == b"{}" else b",") + name


class _Body:
    """Bytes of a response, which knows at any time how many more it can surely take."""

    def __init__(self, gzipped: bool) -> None:
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if gzipped else None
        self._written: list[bytes] = []
        self._size = 0
        self._piece = bytearray()

    def write(self, text: bytes) -> None:
        self._piece += text
        if len(self._piece) >= _PIECE_BYTES:
            self._flush(zlib.Z_SYNC_FLUSH)

    def has_room(self, size: int) -> bool:
        """For so many more bytes, even if they and what is not flushed yet do not compress."""
        pending = len(self._piece) + size
        return self._size + pending + pending // 1000 + _TAIL_BYTES <= BODY_LIMIT_BYTES

    def finish(self) -> bytes:
        self._flush(zlib.Z_FINISH)
        return b"".join(self._written)

    def _flush(self, how: int) -> None:
        """A sync flush costs a few bytes and makes the compressed size known."""
        piece = bytes(self._piece)
        self._piece.clear()
        if self._compressor is not None:
            piece = self._compressor.compress(piece) + self._compressor.flush(how)
        self._written.append(piece)
        self._size += len(piece)
