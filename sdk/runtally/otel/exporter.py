"""The exporter for workers: spans go straight to the queue, mapped in the process."""

import base64
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk import trace
from opentelemetry.sdk.trace import export

from runtally import payloads
from runtally.otel.spans import (
    PARENT_IS_LOCAL,
    PARENT_IS_REMOTE,
    Link,
    Scope,
    Span,
    SpanEvent,
    number,
)
from runtally.otel.steps import events_of_span
from runtally.recorder import Recorder, RecordingLost
from runtally.wire import Rejected

if TYPE_CHECKING:
    from opentelemetry.util.types import Attributes
    from typing_extensions import Self

_log = logging.getLogger("runtally")


class SpanExporter(export.SpanExporter):
    """Records each span as a step, for a SimpleSpanProcessor or a BatchSpanProcessor.

    The same spans sent to the OTLP route give the same events, byte for byte. The processors of the
    SDK pass no flush on: before a process is frozen, flush the provider and then this exporter or
    its Recorder.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._settle = recorder.flush

    @classmethod
    def from_environment(cls) -> "Self":
        """With a Recorder of its own: Recorder.from_environment says which variables count."""
        exporter = cls(Recorder.from_environment())
        exporter._settle = exporter._recorder.close
        return exporter

    def export(self, spans: Sequence[trace.ReadableSpan]) -> export.SpanExportResult:
        """Hand spans to the Recorder, which sends in the background. FAILURE when there was one
        that no step can be made of; it is logged, and counted as lost."""
        done = [self._record(span) for span in spans]
        return export.SpanExportResult.SUCCESS if all(done) else export.SpanExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 30_000) -> bool:
        """Flush the Recorder; whether nothing is left behind and nothing was lost."""
        try:
            return not self._recorder.flush(timeout_millis / 1000)
        except RecordingLost:  # logged when it happened
            return False

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        """Flush the Recorder, and close it if it is this exporter's own."""
        with contextlib.suppress(RecordingLost):  # logged when it happened
            self._settle(timeout_millis / 1000)

    def _record(self, span: trace.ReadableSpan) -> bool:
        try:
            mapped = events_of_span(span_of(span), self._recorder.redacted)
        except Exception as error:  # noqa: BLE001 - never the application's problem
            unforeseen = not isinstance(error, Rejected)
            _log.warning("runtally: a span is not recorded: %s", error, exc_info=unforeseen)
            self._recorder.count_lost(1, "no step can be made of a span")
            return False
        self._recorder.record_events(mapped.run_id, mapped.events, at_once=mapped.ends_run)
        return True


def span_of(span: trace.ReadableSpan) -> Span:
    """The span as OTLP would have carried it. Only what OTLP has no place for, and its exporters
    drop, is kept: integers beyond 64 bits, and strings with half a surrogate pair."""
    context = span.get_span_context()
    return Span(
        trace_id=f"{context.trace_id:032x}" if context else "",
        span_id=f"{context.span_id:016x}" if context else "",
        parent_span_id=f"{span.parent.span_id:016x}" if span.parent else "",
        name=span.name,
        started_at=span.start_time or 0,
        ended_at=span.end_time or 0,
        scope=_scope(span),
        kind=span.kind.value + 1,  # OTLP begins with "unspecified", which the SDK does not have
        attributes=_attributes(span.attributes),
        events=[
            SpanEvent(
                event.name, event.timestamp, _attributes(event.attributes), event.dropped_attributes
            )
            for event in span.events
        ],
        links=[
            Link(
                f"{link.context.trace_id:032x}",
                f"{link.context.span_id:016x}",
                _attributes(link.attributes),
                link.dropped_attributes,  # and no trace state: OTLP's exporters send none
            )
            for link in span.links
        ],
        status_code=span.status.status_code.value,
        status_message=span.status.description or "",
        trace_state=context.trace_state.to_header() if context else "",
        flags=PARENT_IS_REMOTE if span.parent and span.parent.is_remote else PARENT_IS_LOCAL,
        dropped_attributes=span.dropped_attributes,
        dropped_events=span.dropped_events,
        dropped_links=span.dropped_links,
    )


def _scope(span: trace.ReadableSpan) -> Scope:
    resource = span.resource
    scope = span.instrumentation_scope
    if scope is None:
        return Scope(_attributes(resource.attributes), schema_url=resource.schema_url)
    return Scope(
        resource=_attributes(resource.attributes),
        name=scope.name,
        version=scope.version or "",
        attributes=_attributes(scope.attributes),
        schema_url=scope.schema_url or resource.schema_url,
    )


def _attributes(attributes: "Attributes") -> dict[str, Any]:
    return {key: _value(value) for key, value in (attributes or {}).items()}


def _value(value: object) -> Any:
    """In the types of `spans`, and exactly those: numpy's floats and the enums of strings that are
    instances of these would be written differently."""
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return convert(value)
    return payloads.described(value)


_CONVERSIONS: Final[tuple[tuple[tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((bool, type(None)), lambda v: v),
    ((str,), str.__str__),
    ((int,), int),
    ((float,), lambda v: number(float(v))),
    ((bytes,), lambda v: {"base64": base64.b64encode(v).decode("ascii")}),
    ((Mapping,), lambda v: {str(key): _value(entry) for key, entry in v.items()}),
    ((Sequence,), lambda v: [_value(entry) for entry in v]),
)
