"""OTLP as protobuf. Importing this imports protobuf and its descriptors."""

import base64
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from runtally.otel.spans import Link, LogRecord, Scope, Span, SpanEvent, number
from runtally.wire import Rejected

_M = TypeVar("_M", bound=Message)


def spans_in(body: bytes) -> list[Span | Rejected]:
    # The same fields as ExportTraceServiceRequest, without what describes the service.
    request = _decoded(trace_pb2.TracesData, body)
    return [
        _span(span, scope)
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for scope in [_scope(of_resource, of_scope)]
        for span in of_scope.spans
    ]


def log_records_in(body: bytes) -> list[LogRecord | Rejected]:
    request = _decoded(logs_pb2.LogsData, body)
    return [
        _log_record(record, scope)
        for of_resource in request.resource_logs
        for of_scope in of_resource.scope_logs
        for scope in [_scope(of_resource, of_scope)]
        for record in of_scope.log_records
    ]


def _decoded(kind: type[_M], body: bytes) -> _M:
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise Rejected("not_protobuf", "", f"no {kind.DESCRIPTOR.full_name}: {error}") from None


def _scope(
    of_resource: trace_pb2.ResourceSpans | logs_pb2.ResourceLogs,
    of_scope: trace_pb2.ScopeSpans | logs_pb2.ScopeLogs,
) -> Scope:
    return Scope(
        resource=_attributes(of_resource.resource.attributes),
        name=of_scope.scope.name,
        version=of_scope.scope.version,
        attributes=_attributes(of_scope.scope.attributes),
        schema_url=of_scope.schema_url or of_resource.schema_url,
    )


def _span(span: trace_pb2.Span, scope: Scope) -> Span:
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        started_at=span.start_time_unix_nano,
        ended_at=span.end_time_unix_nano,
        scope=scope,
        kind=span.kind,
        attributes=_attributes(span.attributes),
        events=[
            SpanEvent(
                event.name,
                event.time_unix_nano,
                _attributes(event.attributes),
                event.dropped_attributes_count,
            )
            for event in span.events
        ],
        links=[
            Link(
                link.trace_id.hex(),
                link.span_id.hex(),
                _attributes(link.attributes),
                link.dropped_attributes_count,
                link.trace_state,
            )
            for link in span.links
        ],
        status_code=span.status.code,
        status_message=span.status.message,
        trace_state=span.trace_state,
        flags=span.flags,
        dropped_attributes=span.dropped_attributes_count,
        dropped_events=span.dropped_events_count,
        dropped_links=span.dropped_links_count,
    )


def _log_record(record: logs_pb2.LogRecord, scope: Scope) -> LogRecord:
    return LogRecord(
        at=record.time_unix_nano or record.observed_time_unix_nano,
        event_name=record.event_name,
        scope=scope,
        body=_value(record.body),
        attributes=_attributes(record.attributes),
        severity=record.severity_text or str(record.severity_number or ""),
        trace_id=record.trace_id.hex(),
        span_id=record.span_id.hex(),
        dropped_attributes=record.dropped_attributes_count,
    )


def _attributes(entries: Iterable[KeyValue]) -> dict[str, Any]:
    # Most are texts: asking for the kind of value would take longer than reading it.
    return {entry.key: entry.value.string_value or _value(entry.value) for entry in entries}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind == "double_value":
        return number(value.double_value)
    if kind == "array_value":
        return [_value(entry) for entry in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "bytes_value":
        return {"base64": base64.b64encode(value.bytes_value).decode("ascii")}
    return None if kind is None else getattr(value, kind)
