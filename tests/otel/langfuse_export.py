"""Traces that Langfuse exported, as the spans that they once were.

Langfuse keeps the attributes of a span in the metadata of an observation, JSON texts parsed and
numbers as text, and moves some of them to columns of its own; those come back under the names of
https://langfuse.com/integrations/native/opentelemetry#property-mapping.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from runtally.otel.spans import Scope, Span

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS: Final = {
    "model": "langfuse.observation.model.name",
    "usageDetails": "langfuse.observation.usage_details",
    # What Langfuse computes itself is in `costDetails`.
    "providedCostDetails": "langfuse.observation.cost_details",
    "input": "langfuse.observation.input",
    "output": "langfuse.observation.output",
    "level": "langfuse.observation.level",
    "statusMessage": "langfuse.observation.status_message",
}


def spans_in(path: Path) -> list[Span]:
    export = json.loads(path.read_text(encoding="utf-8"))
    trace = export["trace"]
    return [_span(observation, trace) for observation in export["observations"]]


def nanoseconds(iso: str) -> int:
    return (datetime.fromisoformat(iso) - _EPOCH) // timedelta(microseconds=1) * 1000


def _span(observation: Mapping[str, Any], trace: Mapping[str, Any]) -> Span:
    metadata = observation["metadata"]
    if isinstance(metadata, str):
        metadata = json.loads(metadata)
    scope = metadata.get("scope", {})
    parent = observation["parentObservationId"] or ""
    return Span(
        trace_id=observation["traceId"],
        span_id=observation["id"],
        parent_span_id=parent,
        name=observation["name"],
        started_at=nanoseconds(observation["startTime"]),
        ended_at=nanoseconds(observation["endTime"]),
        scope=Scope(
            resource=metadata.get("resourceAttributes", {}),
            name=scope.get("name", ""),
            version=scope.get("version", ""),
            attributes=scope.get("attributes", {}),
        ),
        attributes={
            **{name: _sent(value) for name, value in metadata.get("attributes", {}).items()},
            **dict(_columns(observation)),
            **({} if parent else dict(_of_trace(trace))),
        },
    )


def _columns(observation: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "langfuse.observation.type", observation["type"].lower()
    for column, name in _COLUMNS.items():
        if observation[column] not in (None, "", {}):
            yield name, _sent(observation[column])


def _of_trace(trace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "langfuse.trace.name", trace["name"]
    if trace["sessionId"]:
        yield "langfuse.session.id", trace["sessionId"]


def _sent(value: Any) -> Any:
    """An attribute as it was sent: what holds objects was JSON text then."""
    if isinstance(value, dict) or (isinstance(value, list) and not all(map(_is_text, value))):
        return json.dumps(value, ensure_ascii=False)
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
