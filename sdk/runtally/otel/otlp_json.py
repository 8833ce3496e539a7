"""OTLP as JSON: the proto3 mapping, but for ids, which are hex.

64-bit integers come as strings or as numbers; what is absent or null has its default; unknown
fields are ignored.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from runtally import json_text
from runtally.otel.spans import Link, LogRecord, Scope, Span, SpanEvent, number
from runtally.wire import Rejected

_Json = Mapping[str, Any]
_T = TypeVar("_T", Span, LogRecord)
_NONE: Final[_Json] = {}


def spans_in(body: bytes) -> list[Span | Rejected]:
    return list(_each(body, "resourceSpans", "scopeSpans", "spans", _span))


def log_records_in(body: bytes) -> list[LogRecord | Rejected]:
    return list(_each(body, "resourceLogs", "scopeLogs", "logRecords", _log_record))


def _each(
    body: bytes, resources: str, scopes: str, members: str, read: Callable[[_Json, Scope], _T]
) -> Iterator[_T | Rejected]:
    request = _decoded(body)
    for i, of_resource in enumerate(_list(request, resources)):
        for j, of_scope in enumerate(_list(of_resource, scopes)):
            scope = _scope(of_resource, of_scope)
            for k, member in enumerate(_list(of_scope, members)):
                yield _read(read, member, scope, f"{resources}[{i}].{scopes}[{j}].{members}[{k}]")


def _read(
    read: Callable[[_Json, Scope], _T], member: _Json, scope: Scope, where: str
) -> _T | Rejected:
    try:
        return read(member, scope)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        return Rejected("invalid_field", where, str(error))


def _decoded(body: bytes) -> _Json:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        pass
    try:  # half a surrogate pair in one span must not cost the others
        return msgspec.json.decode(json_text.mend_strings(body), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected("not_json", "", str(error)) from None


def _scope(of_resource: _Json, of_scope: _Json) -> Scope:
    scope = of_scope.get("scope") or _NONE
    return Scope(
        resource=_attributes(of_resource.get("resource") or _NONE),
        name=scope.get("name") or "",
        version=scope.get("version") or "",
        attributes=_attributes(scope),
        schema_url=of_scope.get("schemaUrl") or of_resource.get("schemaUrl") or "",
    )


def _span(span: _Json, scope: Scope) -> Span:
    status = span.get("status") or _NONE
    return Span(
        trace_id=_hex(span, "traceId"),
        span_id=_hex(span, "spanId"),
        parent_span_id=_hex(span, "parentSpanId"),
        name=span.get("name") or "",
        started_at=_int(span, "startTimeUnixNano"),
        ended_at=_int(span, "endTimeUnixNano"),
        scope=scope,
        kind=_int(span, "kind"),
        attributes=_attributes(span),
        events=[_event(event) for event in _list(span, "events")],
        links=[_link(link) for link in _list(span, "links")],
        status_code=_int(status, "code"),
        status_message=status.get("message") or "",
        trace_state=span.get("traceState") or "",
        dropped_attributes=_int(span, "droppedAttributesCount"),
        dropped_events=_int(span, "droppedEventsCount"),
        dropped_links=_int(span, "droppedLinksCount"),
    )


def _event(event: _Json) -> SpanEvent:
    return SpanEvent(
        event.get("name") or "",
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
    )


def _log_record(record: _Json, scope: Scope) -> LogRecord:
    return LogRecord(
        at=_int(record, "timeUnixNano") or _int(record, "observedTimeUnixNano"),
        event_name=record.get("eventName") or "",
        scope=scope,
        body=_value(record.get("body") or _NONE),
        attributes=_attributes(record),
        severity=record.get("severityText") or "",
        trace_id=_hex(record, "traceId"),
        span_id=_hex(record, "spanId"),
        dropped_attributes=_int(record, "droppedAttributesCount"),
    )


def _attributes(holder: _Json) -> dict[str, Any]:
    return {
        entry["key"]: _value(entry.get("value") or _NONE) for entry in _list(holder, "attributes")
    }


def _value(value: _Json) -> Any:
    for kind, content in value.items():
        read = _VALUES.get(kind)
        if read is not None and content is not None:
            return read(content)
    return None


def _array(content: _Json) -> list[Any]:
    return [_value(entry or _NONE) for entry in _list(content, "values")]


def _key_values(content: _Json) -> dict[str, Any]:
    return {entry["key"]: _value(entry.get("value") or _NONE) for entry in _list(content, "values")}


_VALUES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "stringValue": str,
    "boolValue": bool,
    "intValue": int,
    "doubleValue": lambda given: number(float(given)),
    "arrayValue": _array,
    "kvlistValue": _key_values,
    "bytesValue": lambda text: {"base64": str(text)},
}


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
