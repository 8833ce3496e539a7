"""Requests of OTLP/HTTP, protobuf or JSON, as spans and log records.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from runtally.otel.spans import LogRecord, Span
from runtally.wire import Rejected

Spans: TypeAlias = Sequence[Span | Rejected]
LogRecords: TypeAlias = Sequence[LogRecord | Rejected]
"""In the order of the request; in place of one that cannot be read, why not."""


def spans_in(body: bytes, *, as_json: bool = False) -> Spans:
    """The spans of an ExportTraceServiceRequest. Raises Rejected when it is none."""
    spans: Spans = _reader_of(body, as_json).spans_in(body)
    return spans


def log_records_in(body: bytes, *, as_json: bool = False) -> LogRecords:
    """The records of an ExportLogsServiceRequest. Raises Rejected when it is none."""
    records: LogRecords = _reader_of(body, as_json).log_records_in(body)
    return records


def is_json(body: bytes) -> bool:
    """Told by the first byte, which in protobuf names a field: `{` would name field 15."""
    # Not past a line feed: it names field 1, and a `{` behind it is that field's 123 bytes.
    return body.lstrip(b" \t\r")[:1] == b"{"


def _reader_of(body: bytes, as_json: bool) -> Any:
    """The module that reads it; only one of the two is needed, and protobuf takes 100 ms."""
    if as_json or is_json(body):
        from runtally.otel import otlp_json  # noqa: PLC0415

        return otlp_json
    try:
        from runtally.otel import otlp_protobuf  # noqa: PLC0415
    except ImportError as error:
        raise Rejected("no_protobuf", "", f"install runtally[otlp]: {error}") from error
    return otlp_protobuf
