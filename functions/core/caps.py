"""How large what we keep may become, in UTF-8 bytes, and the one way to cut text.

What is cut on an item is uncut in the object of the same message. DynamoDB refuses items over 400
KB; these caps keep a step item under 1 KB in practice and 4 KB always, every other item of a run
under 100 KB, and an invocation, whose result is what its caller polls for, under 310 KB.
"""

import json
from collections.abc import Mapping
from typing import Final

from runtally.wire import Attributes

NAME: Final = 128
ERROR: Final = 256
STEP_ATTRIBUTES: Final = 2_048
RUN_ATTRIBUTES: Final = 8_192
LOG_LINES: Final = 16_000
RESULT: Final = 72_000
RUN_ERROR: Final = 4_096
INVOCATION_RESULT: Final = 300_000

PREVIEW_ENTRIES: Final = 100
PREVIEW_NAME: Final = 24

PHASES: Final = 200
PHASES_BYTES: Final = 90_000
NAMES_OF_A_PHASE: Final = 8


def cut(text: str, limit: int) -> str:
    """The longest beginning of `text` that fits `limit` bytes of UTF-8 and splits no character."""
    if len(text) * 4 <= limit:
        return text
    encoded = text.encode()
    return text if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")


def cut_attributes(attributes: Mapping[str, object] | Attributes, limit: int) -> tuple[str, int]:
    """As JSON text the leading attributes that fit `limit` bytes, and how many were left out.

    Whole entries only, in the sender's order: a value cut in the middle would no longer be what was
    sent.
    """
    kept: list[str] = []
    size = 2
    for key, value in attributes.items():
        entry = f"{json.dumps(key, ensure_ascii=False)}:{json.dumps(value, ensure_ascii=False)}"
        size += len(entry.encode()) + 1
        if size > limit:
            break
        kept.append(entry)
    return "{" + ",".join(kept) + "}", len(attributes) - len(kept)
