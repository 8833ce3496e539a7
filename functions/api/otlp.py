"""What OpenTelemetry's exporters send, taken apart into ordinary messages on the ordinary queue.

Everything that knows OpenTelemetry is imported with the first such request.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from functions.core import caps, retention
from functions.core.api_ports import EventQueue
from functions.core.errors import Rejected, TooLarge

if TYPE_CHECKING:
    from runtally.otel.steps import Mapped
    from runtally.redaction import Redactor

Signal = Literal["traces", "logs"]

REQUEST_LIMIT_BYTES: Final = 4_500_000
"""Lambda takes 6 MiB, in which a body that is no text comes as base64, four bytes for three."""
INFLATED_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Half of what OTLP suggests: any request below it is done in the function's time and memory."""
SPANS_LIMIT: Final = 20_000
SMALLER: Final = "set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=64"
_TOLD: Final = 3
_REASON_BYTES: Final = 200


@dataclass(slots=True)
class Taken:
    """How many spans or records of a request will never be recorded, and why."""

    rejected: int = 0
    _reasons: dict[str, list[int]] = field(default_factory=dict)

    def reject(self, rejected: Rejected, index: int) -> None:
        """Reasons alike are told once, with the place of the first."""
        where = f"{rejected.field}: " if rejected.field else ""
        reason = caps.cut(f"{where}{rejected.detail}", _REASON_BYTES)
        count = self._reasons.setdefault(f"{reason} ({rejected.reason})", [index, 0])
        count[1] += 1
        self.rejected += 1

    @property
    def message(self) -> str:
        """Empty when all was taken."""
        by_count = sorted(self._reasons.items(), key=lambda entry: -entry[1][1])
        told = [f"{count} x [{first}] {why}" for why, (first, count) in by_count[:_TOLD]]
        more = len(by_count) - len(told)
        return "; ".join(told + [f"and {more} other reasons"] * bool(more))


@dataclass(frozen=True, slots=True)
class AcceptOtlp:
    queue: EventQueue
    now_ns: Callable[[], int]
    retention_days: int
    redactor: "Redactor | None" = None

    def __call__(
        self, tenant_id: str, signal: Signal, body: bytes, *, as_json: bool = False
    ) -> Taken:
        """Send on what can be recorded, redacted if there is a redactor. The same spans again, in
        whatever requests, are the same events.

        Raises Rejected when the body is no request of that signal, TooLarge when it holds too many,
        Unavailable when the queue does not take everything: then all may be sent again.
        """
        from runtally.otel import messages  # noqa: PLC0415 - for those who send it

        taken = Taken()
        accepted: list[Mapped] = []
        sources = messages.read(signal, body, as_json=as_json)
        if len(sources) > SPANS_LIMIT:
            raise TooLarge(f"a request may have {SPANS_LIMIT:,} spans or records; {SMALLER}")
        redact = str if self.redactor is None else self.redactor.text
        for index, mapped in enumerate(messages.mapped(sources, redact)):
            try:
                accepted.append(self._checked(mapped))
            except Rejected as rejected:
                taken.reject(rejected, index)
        sealed = messages.sealed(tenant_id, accepted)
        self.queue.send_all(tenant_id, [message.body for message in sealed])
        return taken

    def _checked(self, mapped: "Mapped | Rejected") -> "Mapped":
        if isinstance(mapped, Rejected):
            raise mapped
        for event in mapped.events:
            retention.refuse_if_expired(event, "step", self.now_ns(), self.retention_days)
        if self.redactor is None:
            return mapped
        return mapped._replace(events=[self.redactor.event(event) for event in mapped.events])
