"""Spans as OpenTelemetry's SDK for Python prints them (`ReadableSpan.to_json`), which is what
Monocle writes to files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from runtally.otel.spans import Scope, Span, SpanEvent
from tests.otel.langfuse_export import nanoseconds

_STATUS: Final = {"UNSET": 0, "OK": 1, "ERROR": 2}
_KINDS: Final = {"SpanKind.INTERNAL": 1}


def spans_in(path: Path) -> list[Span]:
    return [_span(printed) for printed in json.loads(path.read_text(encoding="utf-8"))]


def _span(printed: Mapping[str, Any]) -> Span:
    return Span(
        trace_id=printed["context"]["trace_id"],
        span_id=printed["context"]["span_id"],
        parent_span_id=printed["parent_id"] or "",
        name=printed["name"],
        started_at=nanoseconds(printed["start_time"]),
        ended_at=nanoseconds(printed["end_time"]),
        scope=Scope(resource=printed["resource"]["attributes"]),
        kind=_KINDS[printed["kind"]],
        attributes=printed["attributes"],
        events=[
            SpanEvent(event["name"], nanoseconds(event["timestamp"]), event["attributes"])
            for event in printed["events"]
        ],
        status_code=_STATUS[printed["status"]["status_code"]],
        status_message=printed["status"].get("description", ""),
    )
