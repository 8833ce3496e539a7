"""The payload of a span: everything that it told, what it was about in front."""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

import msgspec

from runtally import json_text, payloads
from runtally.otel import mapping
from runtally.otel.rows import Rows
from runtally.otel.spans import KINDS, Attributes, Link, LogRecord, Scope, Span, SpanEvent

_OPENING: Final = ("{", "[")
_DEEPEST: Final = json_text.MAX_DEPTH - 3
"""Of a member: the payload must not be too deep around it."""
_LEVELS: Final = 20
_INDEX: Final = re.compile("[0-9]{1,9}")
_encode: Final = msgspec.json.Encoder().encode
_ROWS: Final = Rows(mapping.PAYLOAD)
_NUMBERED: Final = re.compile(
    rf"({'|'.join(map(re.escape, mapping.NUMBERED))})\.([0-9].*)", re.DOTALL
)
_ADDRESS: Final = re.compile("@|%40")
_Parts = dict[str, bytes]


class _Told(msgspec.Struct, omit_defaults=True):
    """All that a span or a log record says besides what it was about; what is empty is left out."""

    attributes: dict[str, Any] = {}
    body: Any = None
    events: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    name: str = ""
    severity: str = ""
    kind: str | int | None = None
    status: dict[str, Any] = {}
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    trace_state: str = ""
    dropped: dict[str, int] = {}
    resource: Attributes = {}
    scope: dict[str, Any] = {}


def of_span(span: Span) -> bytes:
    """As minified JSON: `instructions`, `input`, `output` and `tools`, then `attributes` and
    `events`, all that is left of them, and where the span comes from."""
    rest = _unflattened(span.attributes)
    parts = _taken(rest)
    events = _with_messages(parts, span.events)
    told = _Told(
        attributes=rest,
        events=[_event(event) for event in events],
        links=[_link(link) for link in span.links],
        name=span.name,
        kind=KINDS[span.kind] if 0 <= span.kind < len(KINDS) else span.kind,
        status=_present(code=span.status_code, message=span.status_message),
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        trace_state=span.trace_state,
        dropped=_present(
            attributes=span.dropped_attributes,
            events=span.dropped_events,
            links=span.dropped_links,
        ),
        resource=span.scope.resource,
        scope=_scope(span.scope),
    )
    return _written(parts, told)


def of_log_record(record: LogRecord) -> bytes:
    """As minified JSON, in the same form as a span's."""
    rest = _unflattened(record.attributes)
    body = record.body
    parts = _taken(rest)
    if isinstance(body, Mapping):  # an event's content may stand in its body
        body = _unflattened(body)
        parts |= _taken(body, but=parts)
    told = _Told(
        attributes=rest,
        body=None if body in ("", {}, []) else body,
        name=record.event_name,
        severity=record.severity,
        trace_id=record.trace_id,
        span_id=record.span_id,
        dropped=_present(attributes=record.dropped_attributes),
        resource=record.scope.resource,
        scope=_scope(record.scope),
    )
    return _written(parts, told)


def _taken(rest: dict[str, Any], but: Container[str] = ()) -> _Parts:
    """Takes what the span was about out of its attributes."""
    found = _ROWS.find(rest)
    return {
        part: _embedded(rest.pop(found[part]))
        for part in mapping.PAYLOAD
        if part in found and part not in but
    }


def _with_messages(parts: _Parts, events: Sequence[SpanEvent]) -> Sequence[SpanEvent]:
    """Adds the messages that came as events, where attributes hold none; returns the others."""
    messages: dict[str, list[bytes]] = {}
    others: list[SpanEvent] = []
    for event in events:
        part, role = mapping.MESSAGE_EVENTS.get(event.name, ("", ""))
        if not part or part in parts:
            others.append(event)
            continue
        message = {"role": role, **event.attributes}
        members = [_member(name, _embedded(value)) for name, value in message.items()]
        members += [_member("time_unix_nano", str(event.at).encode())]
        if event.dropped_attributes:
            members += [_member("dropped_attributes", str(event.dropped_attributes).encode())]
        messages.setdefault(part, []).append(b"{" + b",".join(members) + b"}")
    for part, texts in messages.items():
        parts[part] = b"[" + b",".join(texts) + b"]"
    return others


def _written(parts: _Parts, told: _Told) -> bytes:
    members = [_member(name, parts[name]) for name in mapping.PAYLOAD if name in parts]
    written = _encoded(told)
    if written.startswith(b"{") and not json_text.deeper_than(written, _DEEPEST):
        members.append(written[1:-1])
    else:  # what nests too deep is written as text, and only that
        for name, value in msgspec.structs.asdict(told).items():
            if value not in (None, "", {}, []):
                members.append(_member(name, _encoded(value)))
    return b"{" + b",".join(members) + b"}"


def _member(name: str, text: bytes) -> bytes:
    if json_text.deeper_than(text, _DEEPEST):
        text = json_text.as_string(text)
    return _encoded(name) + b":" + text


def _embedded(value: Any) -> bytes:
    """JSON text as the JSON that it is, every number as it was written; other values encoded."""
    if isinstance(value, str) and value.startswith(_OPENING):
        return _json_in(value)
    return _encoded(value)


def _json_in(text: str) -> bytes:
    """What a strict parser takes is only minified; the rest takes the longer way."""
    raw = json_text.utf8(text)
    try:
        return json_text.mend_strings(json_text.minify(raw))
    except (msgspec.DecodeError, RecursionError):
        return payloads.encode(msgspec.Raw(raw))


def _encoded(value: object) -> bytes:
    """As payloads.encode, at a fifth of its time, for values that are nearly all plain."""
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # half a surrogate pair, say
        return payloads.encode(value)


def _unflattened(attributes: Attributes) -> dict[str, Any]:
    """A copy with `llm.input_messages.0.message.role` and its like as lists of objects.

    A name with an address in it stays whole, or redaction would find only pieces.
    """
    flat: dict[str, Any] = {}
    trees: dict[str, dict[str, Any]] = {}
    for name, value in attributes.items():
        match = _NUMBERED.fullmatch(name) if name.startswith(mapping.NUMBERED) else None
        if match and not _ADDRESS.search(name):
            _plant(trees.setdefault(match[1], {}), match[2].split(".", _LEVELS), value)
        else:
            flat[name] = value
    for name, tree in trees.items():
        # An attribute of that very name, which nobody should send, keeps its own.
        flat[name if name not in flat else f"{name}.*"] = _as_lists(tree)
    return flat


def _plant(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for part in path[:-1]:
        below = tree.setdefault(part, {})
        if not isinstance(below, dict):  # both `a` and `a.b` were sent
            below = tree[part] = {"": below}
        tree = below
    last = path[-1]
    if isinstance(tree.get(last), dict):
        tree[last][""] = value
    else:
        tree[last] = value


def _as_lists(tree: Any) -> Any:
    """Objects whose keys are all numbers become lists, in their order; what is missing at the front
    is for the counts of what was dropped to tell."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(_INDEX.fullmatch(key) for key in tree):
        return [_as_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _as_lists(value) for key, value in tree.items()}


def _event(event: SpanEvent) -> dict[str, Any]:
    return {
        "name": event.name,
        "time_unix_nano": event.at,
        **_present(attributes=event.attributes, dropped_attributes=event.dropped_attributes),
    }


def _link(link: Link) -> dict[str, Any]:
    return _present(
        trace_id=link.trace_id,
        span_id=link.span_id,
        trace_state=link.trace_state,
        attributes=link.attributes,
        dropped_attributes=link.dropped_attributes,
    )


def _scope(scope: Scope) -> dict[str, Any]:
    return _present(
        name=scope.name,
        version=scope.version,
        attributes=scope.attributes,
        schema_url=scope.schema_url,
    )


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
