"""OTLP as JSON: the proto3 mapping, but for ids, which are hex.

64-bit integers come as strings or as numbers; what is absent or null has its default; unknown
fields are ignored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from runtally import json_text
from runtally.otel.spans import Link, LogRecord, Scope, Span, SpanEvent, number
from runtally.wire import Rejected

_Json = Mapping[str, Any]
_T = TypeVar("_T", Span, LogRecord)
_NONE: Final[_Json] = {}
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def spans_in(body: bytes) -> list[Span | Rejected]:
    return list(_each(body, "resourceSpans", "scopeSpans", "spans", _span))


def log_records_in(body: bytes) -> list[LogRecord | Rejected]:
    return list(_each(body, "resourceLogs", "scopeLogs", "logRecords", _log_record))


def _each(
    body: bytes, resources: str, scopes: str, members: str, read: Callable[[_Json, Scope], _T]
) -> Iterator[_T | Rejected]:
    """What cannot be read is told once for all that hangs on it, and costs nothing else."""
    for of_resource in _members(_decoded(body), resources):
        for of_scope in _members(of_resource, scopes):
            scope = _attempt(_scope, of_resource, of_scope)
            for member in _members(of_scope, members):
                refused = next((r for r in (member, scope) if isinstance(r, Rejected)), None)
                yield refused or _attempt(read, member, scope)


def _members(holder: Any, name: str) -> list[Any]:
    """The entries of a list; in place of them, why there are none."""
    found = holder if isinstance(holder, Rejected) else _attempt(_list, holder, name)
    return [found] if isinstance(found, Rejected) else found


def _attempt(read: Callable[..., Any], *given: Any) -> Any:
    try:
        return read(*given)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        return Rejected("invalid_field", "", str(error))
    except RecursionError:
        return Rejected("invalid_field", "", "nested too deep")


def _decoded(body: bytes) -> _Json:
    body = body.removeprefix(_BYTE_ORDER_MARK)
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        pass
    try:  # half a surrogate pair in one span must not cost the others
        return msgspec.json.decode(json_text.mend_strings(body), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected("not_json", "", str(error)) from None


def _scope(of_resource: _Json, of_scope: _Json) -> Scope:
    scope = of_scope.get("scope") or _NONE
    return Scope(
        resource=_attributes(of_resource.get("resource") or _NONE),
        name=_text(scope, "name"),
        version=_text(scope, "version"),
        attributes=_attributes(scope),
        schema_url=_text(of_scope, "schemaUrl") or _text(of_resource, "schemaUrl"),
    )


def _span(span: _Json, scope: Scope) -> Span:
    status = span.get("status") or _NONE
    return Span(
        trace_id=_hex(span, "traceId"),
        span_id=_hex(span, "spanId"),
        parent_span_id=_hex(span, "parentSpanId"),
        name=_text(span, "name"),
        started_at=_int(span, "startTimeUnixNano"),
        ended_at=_int(span, "endTimeUnixNano"),
        scope=scope,
        kind=_int(span, "kind"),
        attributes=_attributes(span),
        events=[_event(event) for event in _list(span, "events")],
        links=[_link(link) for link in _list(span, "links")],
        status_code=_int(status, "code"),
        status_message=_text(status, "message"),
        trace_state=_text(span, "traceState"),
        flags=_int(span, "flags"),
        dropped_attributes=_int(span, "droppedAttributesCount"),
        dropped_events=_int(span, "droppedEventsCount"),
        dropped_links=_int(span, "droppedLinksCount"),
    )


def _event(event: _Json) -> SpanEvent:
    return SpanEvent(
        _text(event, "name"),
        _int(event, "timeUnixNano"),
        _attributes(event),
        _int(event, "droppedAttributesCount"),
    )


def _link(link: _Json) -> Link:
    return Link(
        _hex(link, "traceId"),
        _hex(link, "spanId"),
        _attributes(link),
        _int(link, "droppedAttributesCount"),
        _text(link, "traceState"),
    )


def _log_record(record: _Json, scope: Scope) -> LogRecord:
    return LogRecord(
        at=_int(record, "timeUnixNano") or _int(record, "observedTimeUnixNano"),
        event_name=_text(record, "eventName"),
        scope=scope,
        body=_value(record.get("body") or _NONE),
        attributes=_attributes(record),
        severity=_text(record, "severityText") or str(_int(record, "severityNumber") or ""),
        trace_id=_hex(record, "traceId"),
        span_id=_hex(record, "spanId"),
        dropped_attributes=_int(record, "droppedAttributesCount"),
    )


def _attributes(holder: _Json) -> dict[str, Any]:
    return _pairs(_list(holder, "attributes"))


def _pairs(entries: Iterable[Any]) -> dict[str, Any]:
    return {_text(entry, "key"): _value(entry.get("value") or _NONE) for entry in entries}


def _value(value: _Json) -> Any:
    for kind, content in value.items():
        read = _VALUES.get(kind)
        if read is not None and content is not None:
            return read(content)
    return None


def _array(content: _Json) -> list[Any]:
    return [_value(entry or _NONE) for entry in _list(content, "values")]


def _key_values(content: _Json) -> dict[str, Any]:
    return _pairs(_list(content, "values"))


_VALUES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "stringValue": str,
    "boolValue": bool,
    "intValue": int,
    "doubleValue": lambda given: number(float(given)),
    "arrayValue": _array,
    "kvlistValue": _key_values,
    "bytesValue": lambda text: {"base64": _base64(str(text))},
}


def _base64(text: str) -> str:
    """As protobuf's bytes would be written: with padding, in the standard alphabet."""
    padded = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    return padded + "=" * (-len(padded) % 4)


def _text(holder: _Json, name: str) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is no text")
    return value


def _list(holder: _Json, name: str) -> list[Any]:
    entries = holder.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise TypeError(f"`{name}` is no list")
    return entries


def _int(holder: _Json, name: str) -> int:
    value = holder.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"`{name}` is no integer")
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"`{name}` is no integer") from None


def _hex(holder: _Json, name: str) -> str:
    return str(holder.get(name) or "").lower()
