"""Events too large for the way that they have to go: shortened, said so, but kept."""

import msgspec

from runtally import fields, wire
from runtally.cuts import sealed_size

HEAD_ALLOWANCE = 1_024
"""More than an envelope ever takes: ids are at most 64 and 128 characters."""


def line_within(event: wire.Event, limit: int | None) -> bytes:
    """The event's line, in a sealed body of at most `limit` bytes.

    A payload that does not fit gives way to a note with its size; then, should texts alone be too
    large, each is cut to what does.
    """
    line = wire.encode_event(event)
    if limit is None or _fits(line, limit):
        return line
    if isinstance(event, wire.Step) and not isinstance(event.payload, msgspec.UnsetType):
        event = _without_payload(event, limit)
        line = wire.encode_event(event)
    cap = limit
    while not _fits(line, limit):
        cap //= 2
        line = wire.encode_event(_with_short_texts(event, cap))
    return line


def _fits(line: bytes, limit: int) -> bool:
    return sealed_size(line) + HEAD_ALLOWANCE <= limit


def _without_payload(step: wire.Step, limit: int) -> wire.Step:
    size = len(bytes(step.payload)) if isinstance(step.payload, msgspec.Raw) else 0
    note = msgspec.json.encode({"runtally.omitted": {"bytes": size, "limit_bytes": limit}})
    return msgspec.structs.replace(
        step, payload=msgspec.Raw(note), attributes=_noted(step.attributes, "payload")
    )


def _with_short_texts(event: wire.Event, cap: int) -> wire.Event:
    changes: dict[str, object] = {}
    for name, value in msgspec.structs.asdict(event).items():
        if isinstance(value, str) and len(value) > cap:
            changes[name] = _shortened(value, cap)
        elif name == "lines":
            changes[name] = _short_lines(value, cap)
        elif name == "attributes" and value and len(msgspec.json.encode(value)) > cap:
            changes[name] = _noted(None, "attributes")
    return msgspec.structs.replace(event, **changes)


def _short_lines(lines: list[str], cap: int) -> list[str]:
    kept: list[str] = []
    room = cap
    for line in lines:
        if len(line) + 3 > room:
            kept += [_shortened(line, room)] if room else []
            return [*kept, f"… ({len(lines) - len(kept)} lines more)"]
        kept.append(line)
        room -= len(line) + 3
    return kept


def _shortened(text: str, cap: int) -> str:
    return f"{text[:cap]}… ({len(text)} characters)"


def _noted(attributes: wire.Attributes | None, field: str) -> wire.Attributes:
    known = (attributes or {}).get(fields.DROPPED)
    return {
        **(attributes or {}),
        fields.DROPPED: [*(known if isinstance(known, list) else []), field],
    }
