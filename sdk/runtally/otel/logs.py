"""Log records as events of runs: what some emitters tell of model calls nowhere else.

Claude Code counts tokens and cost in its events alone, so there an event is the step. What the
conventions call `gen_ai.client.inference.operation.details` repeats a span and adds its content: a
step below that span, counted only when there is no span.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from runtally import fields, wire
from runtally.fields import run_id_of
from runtally.otel import content
from runtally.otel.facts import Facts, dropped
from runtally.otel.rows import first_of
from runtally.otel.spans import LogRecord
from runtally.otel.steps import Mapped, given_run_id, suffix_of
from runtally.wire import Rejected, RunStarted

_CLAUDE_CODE: Final = "claude_code."
_KINDS: Final = {
    "claude_code.api_error": "model",
    "claude_code.tool_result": "tool",
    "claude_code.user_prompt": "prompt",
}
_CALL: Final = "claude_code.api_request"
_BEGINS_RUN: Final = "claude_code.user_prompt"
_FAILS: Final = "claude_code.api_error"
_MILLISECOND: Final = 1_000_000


def events_of_log_record(record: LogRecord, redact: Callable[[str], str] = str) -> Mapped:
    """A step; before it, at a prompt, the start of its run. Raises Rejected for what is no event of
    a model's work, or of no run. What is redacted is what `events_of_span` says."""
    name = _name_of(record)
    if not name.startswith((_CLAUDE_CODE, "gen_ai.")):
        raise Rejected("no_genai_event", "eventName", "only events of model calls are recorded")
    if not 0 < record.at < 2**63:
        raise Rejected("invalid_field", "timeUnixNano", "no time of an event")
    facts = Facts(name, record.attributes, _kind_of(record, name), redact=redact)
    run_id = _run_id_of(record, facts)
    step = _step_of(record, name, facts)
    if name != _BEGINS_RUN:
        return Mapped(run_id, [step])
    started = RunStarted(
        at=step.started_at,
        pipeline=str(record.scope.resource.get("service.name") or "claude-code"),
        attributes=fields.attributes(record.scope.resource),
        session_id=step.session_id,
    )
    return Mapped(run_id, [started, step])


def _name_of(record: LogRecord) -> str:
    """Claude Code has the whole name in the body, its last part in an attribute."""
    named = record.event_name or first_of(record.attributes, ("event.name",)) or ""
    body = record.body if isinstance(record.body, str) else ""
    return body if body.startswith(_CLAUDE_CODE) else str(named)


def _run_id_of(record: LogRecord, facts: Facts) -> str:
    given = given_run_id(facts, record.scope)
    found = given or record.trace_id or facts.told.get("session_id")
    if not found:
        raise Rejected("no_run", "traceId", "neither a run, a trace nor a session is named")
    return run_id_of(str(found))


def _step_of(record: LogRecord, name: str, facts: Facts) -> wire.Step:
    error = _error_of(name, facts)
    started_at = record.at - _duration_of(record)
    payload = content.of_log_record(record)
    made = fields.Fields(f"event {name}")
    facts.put(made, started_at)
    made.put("name", facts.told.get("tool") or name)
    if record.trace_id and record.span_id:
        made.put("parent_id", suffix_of(record.trace_id, record.span_id))
    made.put("error", error)
    made.put("attributes", dropped(attributes=record.dropped_attributes))
    # A record has no id: what it says is what tells it from others.
    suffix = suffix_of(str(record.at), hashlib.sha256(payload).hexdigest())
    return made.event(
        wire.Step,
        step_id=f"{started_at:019d}-{suffix}",
        kind=facts.kind,
        status="succeeded" if error is None else "failed",
        started_at=started_at,
        ended_at=record.at,
        payload=msgspec.Raw(payload),
    )


def _kind_of(record: LogRecord, name: str) -> str | None:
    """None where the attributes have to tell. What a span tells, too, is counted by the span."""
    if name == _CALL:
        return "model"
    if record.span_id:
        return "event"
    return _KINDS.get(name, "event") if name.startswith(_CLAUDE_CODE) else None


def _error_of(name: str, facts: Facts) -> str | None:
    if facts.kind == "event" or (name != _FAILS and not facts.failed):
        return None
    return str(facts.told.get("error") or "failed without a message")


def _duration_of(record: LogRecord) -> int:
    """Nanoseconds; 0 where nothing sensible is told."""
    told: Any = record.attributes.get("duration_ms")
    try:
        duration = int(float(told) * _MILLISECOND)
    except (TypeError, ValueError, OverflowError):
        return 0
    return duration if 0 <= duration < record.at else 0
