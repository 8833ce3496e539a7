"""Requests as sealed messages: what the OTLP routes send on, and saved files are replayed as."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from runtally import oversize, wire
from runtally.cuts import Packer, Sealed
from runtally.otel import logs, otlp, steps
from runtally.otel.spans import LogRecord, Span
from runtally.otel.steps import Mapped
from runtally.wire import Rejected

Signal: TypeAlias = Literal["traces", "logs"]


def mapped(signal: Signal, body: bytes) -> list[Mapped | Rejected]:
    """What each span or log record of a request is recorded as, in its order, or why it is not.

    Raises Rejected when the body is no request of that signal.
    """
    sources = otlp.spans_in(body) if signal == "traces" else otlp.log_records_in(body)
    return [_attempt(source) for source in sources]


def sealed(tenant_id: str, recorded: Iterable[Mapped]) -> Sequence[Sealed]:
    """Messages of a tenant: the events of each run together, in their order."""
    packer = Packer()
    messages: list[Sealed] = []
    for one in recorded:
        head = wire.Head(1, tenant_id, one.run_id)
        for event in one.events:
            line = oversize.line_within(event, wire.CLAIM_LIMIT_BYTES)
            messages += [cut.seal() for cut in packer.add(head, line, 0.0)]
    return messages + [cut.seal() for cut in packer.take_all()]


def _attempt(source: Span | LogRecord | Rejected) -> Mapped | Rejected:
    try:
        match source:
            case Span():
                return steps.events_of_span(source)
            case LogRecord():
                return logs.events_of_log_record(source)
    except Rejected as rejected:
        return rejected
    return source
