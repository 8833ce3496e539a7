"""A span as OTLP tells it, whichever way it came: protobuf, JSON, or an exporter in the process.

Names and meanings are those of
https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto;
ids are lower-case hex, times nanoseconds since the epoch. Values of attributes are str, bool, int,
finite float, None, and lists and dicts of these; bytes are `{"base64": …}`, what JSON has no number
for is `"NaN"`, `"Infinity"` or `"-Infinity"`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

Attributes: TypeAlias = Mapping[str, Any]

STATUS_ERROR: Final = 2
INTERNAL: Final = 1
PARENT_IS_LOCAL: Final = 0x100
PARENT_IS_REMOTE: Final = 0x300
"""A span's flags: that it is known whether the parent is in another process, and where."""
KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")


def number(value: float) -> float | str:
    """A float as the values of attributes have it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class Scope(Struct, frozen=True):
    """Which instrumentation made a span, and what it runs in."""

    resource: Attributes = {}
    name: str = ""
    version: str = ""
    attributes: Attributes = {}
    schema_url: str = ""


class SpanEvent(Struct, frozen=True):
    name: str
    at: int
    attributes: Attributes
    dropped_attributes: int = 0


class Link(Struct, frozen=True):
    trace_id: str
    span_id: str
    attributes: Attributes
    dropped_attributes: int = 0
    trace_state: str = ""


class Span(Struct, frozen=True):
    trace_id: str
    span_id: str
    parent_span_id: str
    """Empty, or all zeros, for a root."""
    name: str
    started_at: int
    ended_at: int
    scope: Scope
    kind: int = INTERNAL
    attributes: Attributes = {}
    events: Sequence[SpanEvent] = ()
    links: Sequence[Link] = ()
    status_code: int = 0
    status_message: str = ""
    trace_state: str = ""
    flags: int = 0
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0

    @property
    def is_root(self) -> bool:
        return not self.parent_span_id.strip("0")

    @property
    def is_entry(self) -> bool:
        """A root, or the first span of a service that another one called."""
        return self.is_root or self.flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE


class LogRecord(Struct, frozen=True):
    """A log record; `event_name` says what `body` and `attributes` hold."""

    at: int
    event_name: str
    scope: Scope
    body: Any = None
    attributes: Attributes = {}
    severity: str = ""
    trace_id: str = ""
    span_id: str = ""
    dropped_attributes: int = 0
