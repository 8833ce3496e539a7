"""What OpenTelemetry's exporters send, taken apart into ordinary messages on the ordinary queue.

Everything that knows OpenTelemetry is imported with the first such request.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from functions.core import retention
from functions.core.api_ports import EventQueue
from functions.core.errors import Rejected

if TYPE_CHECKING:
    from runtally.otel.steps import Mapped

Signal = Literal["traces", "logs"]

REQUEST_LIMIT_BYTES: Final = 4_500_000
"""Lambda takes 6 MiB, in which a body that is no text comes as base64, four bytes for three."""
INFLATED_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""As https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md says."""
_TOLD: Final = 3


@dataclass(slots=True)
class Taken:
    """How many spans or records of a request will never be recorded, and why."""

    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def reject(self, rejected: Rejected, index: int) -> None:
        """Reasons alike are told once, with the place of the first."""
        alike = f"{rejected.field or 'it'}: {rejected.detail} ({rejected.reason})"
        known = next((told for told in self.reasons if told.endswith(alike)), f"[{index}] {alike}")
        self.reasons[known] += 1
        self.rejected += 1

    @property
    def message(self) -> str:
        """Empty when all was taken."""
        told = [f"{count} x {why}" for why, count in self.reasons.most_common(_TOLD)]
        more = len(self.reasons) - len(told)
        return "; ".join(told + [f"and {more} other reasons"] * bool(more))


@dataclass(frozen=True, slots=True)
class AcceptOtlp:
    queue: EventQueue
    now_ns: Callable[[], int]
    retention_days: int

    def __call__(self, tenant_id: str, signal: Signal, body: bytes) -> Taken:
        """Send on what can be recorded. The same spans again, in whatever requests, are the same
        events.

        Raises Rejected when the body is no request of that signal, Unavailable when the queue does
        not take everything: then all may be sent again.
        """
        from runtally.otel import messages  # noqa: PLC0415 - for those who send it

        taken = Taken()
        accepted: list[Mapped] = []
        for index, mapped in enumerate(messages.mapped(signal, body)):
            try:
                accepted.append(self._checked(mapped))
            except Rejected as rejected:
                taken.reject(rejected, index)
        for message in messages.sealed(tenant_id, accepted):
            self.queue.send_events(tenant_id, message.body)
        return taken

    def _checked(self, mapped: "Mapped | Rejected") -> "Mapped":
        if isinstance(mapped, Rejected):
            raise mapped
        for event in mapped.events:
            retention.refuse_if_expired(event, "step", self.now_ns(), self.retention_days)
        return mapped
