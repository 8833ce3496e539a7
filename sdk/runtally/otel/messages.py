"""Requests as sealed messages: what the OTLP routes send on, and saved files are replayed as."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from runtally import oversize, wire
from runtally.cuts import Packer, Sealed
from runtally.otel import logs, otlp, steps
from runtally.otel.spans import LogRecord, Span
from runtally.otel.steps import Mapped
from runtally.wire import Rejected

_log = logging.getLogger("runtally")

Signal: TypeAlias = Literal["traces", "logs"]
Source: TypeAlias = Span | LogRecord | Rejected


def read(signal: Signal, body: bytes, *, as_json: bool = False) -> Sequence[Source]:
    """The spans or log records of a request, in its order, or why one cannot be read.

    `as_json` for what is said to be JSON; else it shows. Raises Rejected when the body is no
    request of that signal.
    """
    if signal == "traces":
        return otlp.spans_in(body, as_json=as_json)
    return otlp.log_records_in(body, as_json=as_json)


def mapped(
    sources: Iterable[Source], redact: Callable[[str], str] = str
) -> Iterator[Mapped | Rejected]:
    """What each is recorded as, or why it is not: whatever one does, the others are mapped.

    Redacted are those names alone that do not stay whole; the events are still to be.
    """
    return map(_Mapping(redact), sources)


class _Mapping:
    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._told = False

    def __call__(self, source: Source) -> Mapped | Rejected:
        try:
            match source:
                case Span():
                    return steps.events_of_span(source, self._redact)
                case LogRecord():
                    return logs.events_of_log_record(source, self._redact)
        except Rejected as rejected:
            return rejected
        except Exception:  # noqa: BLE001 - a fault of the mapping must not cost its neighbours
            if not self._told:  # a request may hold thousands of the same
                _log.exception("runtally: a span or log record cannot be mapped")
                self._told = True
            return Rejected("unmappable", "", "its mapping failed, which has been logged")
        return source


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
