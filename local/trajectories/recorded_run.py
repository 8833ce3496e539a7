"""A run as events in order: packed into message bodies to send, and summed up to compare with."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from msgspec import UnsetType

from functions.core.model import EXACT
from runtally import wire

MESSAGE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Expected:
    """What a stage must show for a run once everything is counted. `payload_bytes` are as sent."""

    steps: int
    failed: int
    cost_usd: Decimal | None
    cost_unknown: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class RecordedRun:
    run_id: str
    tenant_id: str
    events: tuple[wire.RunEvent, ...]

    def messages(self, per_message: int = 10) -> list[bytes]:
        """Sealed bodies in order: at most `per_message` events and 256 KB, a larger event alone."""
        head = wire.Head(v=1, tenant_id=self.tenant_id, run_id=self.run_id)
        return [wire.seal(head, lines) for lines in self._packed(head, per_message)]

    @property
    def expected(self) -> Expected:
        """Sums over the events; the cost is None when it is unknown for every step."""
        steps = [event for event in self.events if isinstance(event, wire.Step)]
        costs = [Decimal(step.cost_usd) for step in steps if step.cost_usd is not None]
        total = Decimal(0)
        for cost in costs:
            total = EXACT.add(total, cost)
        payloads = [s.payload for s in steps if not isinstance(s.payload, UnsetType)]
        return Expected(
            steps=len(steps),
            failed=sum(step.status == "failed" for step in steps),
            cost_usd=total if costs else None,
            cost_unknown=len(steps) - len(costs),
            input_tokens=sum(step.input_tokens or 0 for step in steps),
            output_tokens=sum(step.output_tokens or 0 for step in steps),
            cached_tokens=sum(step.cached_tokens or 0 for step in steps),
            payload_bytes=sum(len(bytes(payload)) for payload in payloads),
        )

    def _packed(self, head: wire.Head, per_message: int) -> Iterator[list[bytes]]:
        empty = len(wire.seal(head, []))
        lines: list[bytes] = []
        size = empty
        for line in map(wire.encode_event, self.events):
            # As sealed, because sealing may write a character longer; 1 for the comma.
            length = len(wire.seal(head, [line])) - empty + 1
            if lines and (len(lines) == per_message or size + length > MESSAGE_BYTES):
                yield lines
                lines, size = [], empty
            lines.append(line)
            size += length
        yield lines
