"""Steps at a steady rate, cut into messages by the SDK's own rules."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from functions.core.keys import RunRef
from runtally import wire
from runtally.cuts import Packer
from tests.memory_stage import NOW_NS

COST: Final = Decimal("0.0125")
INPUT_TOKENS: Final = 1_200
_LONG_NS: Final = 800_000_000
_TENANT: Final = "acme"


class Timed(NamedTuple):
    """A message as it is sent, and when."""

    at: float
    body: str


@dataclass(frozen=True, slots=True)
class Load:
    """So many runs of one tenant, each with so many steps a second for so long. `large` steps have
    attributes up to their limit, so that each takes three write units."""

    runs: int
    steps_a_second: float
    seconds: float
    buckets: int = 1
    large: bool = False

    @property
    def steps_of_run(self) -> int:
        return int(self.steps_a_second * self.seconds)

    @property
    def refs(self) -> list[RunRef]:
        return [RunRef(_TENANT, f"run-{number}") for number in range(1, self.runs + 1)]

    def messages_of(self, number: int, ref: RunRef) -> Iterator[Timed]:
        """In order of time. Runs begin within a second of each other."""
        head = wire.Head(v=1, tenant_id=ref.tenant_id, run_id=ref.run_id, buckets=self.buckets)
        packer = Packer()
        began = number / self.runs
        start = wire.RunStarted(at=_ns(began), pipeline="research")
        for cut in packer.add(head, wire.encode_event(start), began, at_once=True):
            yield Timed(began, cut.seal().body.decode())
        for step in range(1, self.steps_of_run + 1):
            at = began + step / self.steps_a_second
            cuts = packer.take_due(at)
            cuts += packer.add(head, _step(step, at, large=self.large), at)
            for cut in cuts:
                yield Timed(at, cut.seal().body.decode())
        last = began + self.seconds
        end = wire.RunEnded(at=_ns(last), status="succeeded")
        for cut in packer.add(head, wire.encode_event(end), last, at_once=True):
            yield Timed(last, cut.seal().body.decode())


def _step(number: int, at: float, *, large: bool) -> bytes:
    """A model call whose item takes some 370 bytes, or 2.3 KB. DynamoDB never sees payloads: none
    is sent."""
    ended = _ns(at)
    return wire.encode_event(
        wire.Step(
            step_id=f"{ended - _LONG_NS}-{number:08x}",
            name="write the summary",
            phase=f"phase-{number % 7}",
            agent="researcher",
            kind="model",
            status="succeeded",
            started_at=ended - _LONG_NS,
            ended_at=ended,
            model="gpt-5-mini-2025-08-07",
            provider="openai",
            input_tokens=INPUT_TOKENS,
            output_tokens=240,
            cost_usd=str(COST),
            attributes={"note": "x" * 1_950} if large else None,
        )
    )


def _ns(at: float) -> int:
    return NOW_NS + int(at * 1e9)
