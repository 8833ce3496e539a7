"""What a run came to, as the output of its root tells it."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from runtally.otel.rows import first_of


def result_of(output: bytes) -> str | None:
    """What a run came to: text as text, the last message's if it is messages, else JSON."""
    if output.startswith(b'"'):
        return msgspec.json.decode(output, type=str)
    try:
        last = msgspec.json.decode(output, type=list[dict[str, Any]])[-1]
    except (msgspec.MsgspecError, IndexError, RecursionError):
        return output.decode()
    texts = _texts_in(last)
    return "\n".join(texts) if texts else output.decode()


def _texts_in(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message, in any of the usual forms."""
    inner = message.get("message", message)
    said = (
        inner if not isinstance(inner, Mapping) else first_of(inner, ("parts", "content", "text"))
    )
    if isinstance(said, str):
        return [said]
    parts: Iterable[Any] = said if isinstance(said, list) else []
    found = [
        first_of(part, ("content", "text"))
        for part in parts
        if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text")
    ]
    return [text for text in found if isinstance(text, str)]
