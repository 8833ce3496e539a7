"""Dead letters: the attributes that say why one was refused, and the note that stands for a body
which does not fit beside them.

The body then lies in the bucket. The note may be moved back to the queue like any other body, by
whatever moves messages: ingest reads what it stands for.
"""

from typing import Final

import msgspec
from msgspec import Struct

REASON: Final = "reason"
FIELD: Final = "field"
REFUSED: Final = "refused"
REFUSALS: Final = "refusals"
REFUSAL: Final = frozenset({REASON, FIELD, REFUSED, REFUSALS})
"""Message attributes of what was refused; what was delivered in vain has none of them."""

_BEGINS: Final = '{"dead_letter":'


class KeptAside(Struct, frozen=True):
    """Where in the bucket a body lies, and its size."""

    key: str
    bytes: int


class _Note(Struct, frozen=True):
    dead_letter: KeptAside


_decoder: Final = msgspec.json.Decoder(_Note)


def note(kept: KeptAside) -> str:
    """The message body that stands for one that was kept aside."""
    return msgspec.json.encode(_Note(kept)).decode()


def kept_aside(body: str) -> KeptAside | None:
    """Where the body lies that a note stands for; None for a body that is no note."""
    if not body.startswith(_BEGINS):
        return None
    try:
        return _decoder.decode(body).dead_letter
    except msgspec.DecodeError:
        return None
