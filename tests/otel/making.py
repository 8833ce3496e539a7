"""Spans made by hand, and what a single one becomes."""

import json
from collections.abc import Mapping
from typing import Any, Final

from runtally import wire
from runtally.otel.spans import Scope, Span
from runtally.otel.steps import events_of_span
from tests import build
from tests.otel.figures import payload_of

TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
ROOT: Final = "b7ad6b7169203331"
MODEL: Final = {"gen_ai.operation.name": "chat"}
AGENT: Final = {"gen_ai.operation.name": "invoke_agent"}


def span(attributes: Mapping[str, Any] | None = None, /, **more: Any) -> Span:
    """A root of a second."""
    told: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": ROOT,
        "parent_span_id": "",
        "name": "work",
        "started_at": build.T0,
        "ended_at": build.T0 + build.SECOND,
        "scope": Scope(resource={"service.name": "agents"}),
        "attributes": attributes or {},
    }
    return Span(**told | more)


def child(number: int, attributes: Mapping[str, Any] | None = None, /, **more: Any) -> Span:
    return span(
        attributes,
        **{
            "span_id": f"{number:016x}",
            "parent_span_id": ROOT,
            "started_at": build.T0 + number,
            **more,
        },
    )


def step_of(given: Span) -> wire.Step:
    (step,) = (event for event in events_of_span(given).events if isinstance(event, wire.Step))
    return step


def said(attributes: Mapping[str, Any], **more: Any) -> wire.Step:
    return step_of(span(attributes, **more))


def noted(step: wire.Step) -> dict[str, Any]:
    """The attributes of a step but for its span's id."""
    return {k: v for k, v in (step.attributes or {}).items() if k != "otel.span_id"}


def payload(given: Span) -> Any:
    return json.loads(payload_of(step_of(given)))
