"""Spans as events of runs.

What becomes of a span follows from the span alone, its resource included: sent again, or cut into
requests differently, it gives the same step under the same id, byte for byte.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from runtally import fields, names, wire
from runtally.fields import run_id_of
from runtally.otel import content, mapping
from runtally.otel.facts import Facts, dropped
from runtally.otel.result import result_of
from runtally.otel.rows import first_of
from runtally.otel.spans import STATUS_ERROR, Scope, Span
from runtally.wire import Rejected, RunEnded, RunStarted

_TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}")


class Mapped(NamedTuple):
    """What one span is recorded as: events of one run, in order."""

    run_id: str
    events: Sequence[wire.RunEvent]

    @property
    def ends_run(self) -> bool:
        return isinstance(self.events[-1], RunEnded)


def events_of_span(span: Span, redact: Callable[[str], str] = str) -> Mapped:
    """A step; before it, if it is a root or has its parent in another service, `run.started`; and
    behind a root, unless its run goes on in other traces, `run.ended`.

    Names that are grouped are redacted first: of a key without its digits no rule knows any more.
    Raises Rejected, with OTLP's name of the field, for a span that no step can be made of.
    """
    _check(span)
    facts = Facts(span.name, span.attributes, redact=redact)
    given = given_run_id(facts, span.scope)
    step = _step_of_span(span, facts)
    events: list[wire.RunEvent] = [step]
    if span.is_entry:
        events.insert(0, _run_started(span, facts, given, redact))
    asked = str(span.attributes.get(mapping.RUN_END)).lower() == "true"
    if asked or (given is None and span.is_root):
        events.append(_run_ended(step))
    return Mapped(span.trace_id if given is None else run_id_of(given), events)


def given_run_id(facts: Facts, scope: Scope) -> str | None:
    """The run that a span or its resource names; an empty name, as of an unset variable, does
    not."""
    given = facts.told.get("run_id") or first_of(scope.resource, (mapping.RUN_ID,))
    return None if given is None else str(given)


def step_id_of(trace_id: str, span_id: str, started_at: int) -> str:
    return f"{started_at:019d}-{suffix_of(trace_id, span_id)}"


@lru_cache(maxsize=1_024)  # of a parent it is asked by every child
def suffix_of(*ids: str) -> str:
    """The part of a step's id that its children know too: they do not know when it began."""
    digest = hashlib.sha256("/".join(ids).encode()).digest()
    return base64.b32hexencode(digest[:10])[: wire.PARENT_SUFFIX_LENGTH].decode().lower()


def _check(span: Span) -> None:
    for field, value, form in (
        ("traceId", span.trace_id, _TRACE_ID),
        ("spanId", span.span_id, _SPAN_ID),
    ):
        if not form.fullmatch(value):
            raise Rejected("invalid_field", field, "not a valid id")
    if not 0 < span.started_at < 2**63:
        raise Rejected("invalid_field", "startTimeUnixNano", "no time at which a span can begin")
    if not 0 <= span.ended_at < 2**63:
        raise Rejected("invalid_field", "endTimeUnixNano", "no time at which a span can end")


def _step_of_span(span: Span, facts: Facts) -> wire.Step:
    error = error_of(span, facts)
    made = fields.Fields(f"span {span.name}")
    facts.put(made, span.started_at)
    tool = facts.told.get("tool") if facts.kind == "tool" else None
    made.put("name", str(tool or span.name or facts.kind))
    if not span.is_root:
        made.put("parent_id", suffix_of(span.trace_id, span.parent_span_id))
    made.put("error", error)
    left_out = dropped(attributes=span.dropped_attributes, events=span.dropped_events)
    made.put("attributes", {"otel.span_id": span.span_id, **left_out})
    return made.event(
        wire.Step,
        step_id=step_id_of(span.trace_id, span.span_id, span.started_at),
        kind=facts.kind,
        status=_status_of(span, error),
        started_at=span.started_at,
        ended_at=span.ended_at or span.started_at,
        payload=msgspec.Raw(content.of_span(span)),
    )


def error_of(span: Span, facts: Facts) -> str | None:
    """What went wrong, as short as it was said; None where nothing says that it did."""
    if span.status_code != STATUS_ERROR and not facts.failed:
        return None
    for event in reversed(span.events):
        if event.name == "exception":
            said = (
                event.attributes.get("exception.type"),
                event.attributes.get("exception.message"),
            )
            return ": ".join(str(part) for part in said if part) or "exception"
    said_by = span.status_message or facts.told.get("error")
    return str(said_by) if said_by else "failed without a message"


def _status_of(span: Span, error: str | None) -> str:
    if error is None:
        return "succeeded"
    cancelled = (error.partition(":")[0], str(span.attributes.get("error.type")))
    return "cancelled" if any(c.endswith("CancelledError") for c in cancelled) else "failed"


def _run_started(
    span: Span, facts: Facts, given: str | None, redact: Callable[[str], str]
) -> wire.RunEvent:
    made = fields.Fields(f"run of span {span.name}")
    made.put("session_id", facts.told.get("session_id"))
    made.put("attributes", _attributes_of_run(span, given))
    of_service = first_of(span.scope.resource, (mapping.PIPELINE,))
    told = span.attributes.get(mapping.PIPELINE) or of_service or facts.told.get("workflow")
    pipeline = names.telling(*(redact(name) for name in (str(told or ""), span.name) if name))
    return made.event(
        RunStarted,
        at=span.started_at,
        pipeline=fields.text(pipeline or _service_of(span.scope)),
    )


def _attributes_of_run(span: Span, given: str | None) -> dict[str, Any]:
    """Where the run comes from; and the id that it was given, if the wire format refuses it."""
    attributes = dict(span.scope.resource)
    attributes.pop(mapping.RUN_ID, None)
    if given is not None:
        attributes["otel.trace_id"] = span.trace_id
        if run_id_of(given) != given:
            attributes[mapping.RUN_ID] = given
    return attributes


def _service_of(scope: Scope) -> str:
    return str(scope.resource.get("service.name") or "unnamed")


def _run_ended(step: wire.Step) -> wire.RunEvent:
    result = None
    if isinstance(step.payload, msgspec.Raw):
        output = msgspec.json.decode(step.payload, type=_Output).output
        if isinstance(output, msgspec.Raw):
            result = result_of(bytes(output))
    return RunEnded(step.ended_at, step.status, result, step.error)


class _Output(msgspec.Struct):
    output: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
