"""Where a list goes on: what the reader has seen last, in a form that only that list takes back.

A cursor holds sort keys alone. The partition is rebuilt from the tenant of the key and the path, so
that no cursor can lead anywhere else; the check only keeps a mangled one from going unnoticed.
"""

import base64
import binascii
import hashlib
from typing import Any

import msgspec

from functions.core.errors import Rejected

_CHECK_BYTES = 6


def encode(scope: str, *position: int | str) -> str:
    """`scope` says which list of whose: the same that `decode` must be given."""
    text = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(_check(scope, text) + text).decode().rstrip("=")


def decode[T: tuple[Any, ...]](scope: str, cursor: str, into: type[T]) -> T:
    """The position that `encode` was given, a tuple of this type. Raises Rejected for anything
    else."""
    try:
        content = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        position: T | None = msgspec.json.decode(content[_CHECK_BYTES:], type=into)
    except (binascii.Error, ValueError):
        position = None
    # Base64 and JSON have several spellings of the same; only ours is a cursor.
    if position is None or encode(scope, *position) != cursor:
        raise Rejected("invalid_cursor", "cursor", "not a cursor of this list")
    return position


def _check(scope: str, text: bytes) -> bytes:
    return hashlib.sha256(scope.encode() + b"\0" + text).digest()[:_CHECK_BYTES]
