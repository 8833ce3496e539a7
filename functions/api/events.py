"""Events over HTTP, for workers without AWS credentials: checked, then the ordinary queue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from functions.api import shapes
from functions.core import retention
from functions.core.api_ports import EventQueue
from functions.core.errors import Forbidden, Rejected, TooLarge
from runtally import wire

if TYPE_CHECKING:
    from runtally.redaction import Redactor

BODY_LIMIT_BYTES: Final = wire.SQS_LIMIT_BYTES
EVENTS_LIMIT: Final = 10_000
"""More than a body of 1 MiB can hold of anything that is accepted."""
_LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class AcceptEvents:
    queue: EventQueue
    now_ns: Callable[[], int]
    retention_days: int
    redactor: "Redactor | None" = None

    def __call__(self, tenant_id: str, body: bytes) -> shapes.EventsAccepted:
        """Send on what can be recorded, and say of every other event why it never will be.

        Redacted, if there is a redactor. Sending the same body again changes nothing. Raises
        Rejected when nothing of it can be accepted, TooLarge over 1 MiB, Forbidden for another
        tenant's, Unavailable when the queue does not take it: then nothing was accepted.
        """
        if len(body) > BODY_LIMIT_BYTES:
            raise TooLarge("a body may have 1 MiB: send fewer events at once")
        message = wire.open_message(_text(body))
        if message.head.tenant_id != tenant_id:
            raise Forbidden("tenant_id", "the key belongs to another tenant")
        if message.head.claim is not None:
            raise Rejected("invalid_claim", "claim", "over HTTP a body carries its events itself")
        if len(message.lines) > EVENTS_LIMIT:
            raise TooLarge(f"a body may have {EVENTS_LIMIT:,} events: send fewer at once")
        refused: list[Rejected] = []
        accepted: list[bytes] = []
        for index, line in enumerate(message.lines):
            try:
                self._check(message.head, line, f"events[{index}]")
                accepted.append(line if self.redactor is None else self.redactor.line(line))
            except Rejected as rejected:
                refused.append(rejected)
        if not accepted:
            raise refused[0]
        sealed = wire.seal(message.head, accepted)
        if len(sealed) > wire.SQS_LIMIT_BYTES:
            raise TooLarge("escaped for the queue, the body is over 1 MiB: send fewer events")
        self.queue.send_events(tenant_id, sealed)
        return shapes.EventsAccepted(
            len(accepted),
            len(refused),
            [shapes.RefusedEvent(r.field, r.reason, r.detail) for r in refused[:_LISTED]],
        )

    def _check(self, head: wire.Head, line: bytes, field: str) -> None:
        event = wire.decode_event(line, field)
        wire.check_addressed(head, event, field)
        retention.refuse_if_expired(event, field, self.now_ns(), self.retention_days)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Rejected("not_json", "", f"no UTF-8 at byte {error.start:,}") from None
