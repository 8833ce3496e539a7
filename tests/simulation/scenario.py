"""What the workers of a schedule send: small runs of every shape, some events of them twice."""

import random
from dataclasses import dataclass

from functions.core.keys import RunRef
from functions.core.retention import DAY_S
from runtally import wire
from tests import build
from tests.build import SECOND, T0

TENANTS = ("acme", "globex")
PATIENCE_S = 100_000
_TEXTS = ("", "x", "你好 🎉", "\u0000\u0001", "é" * 60)


@dataclass(frozen=True)
class Sent:
    """One run as its workers send it."""

    ref: RunRef
    buckets: int
    messages: tuple[tuple[wire.Event, ...], ...]
    """Each is sent at least once; the same event may be in several."""

    @property
    def bodies(self) -> list[str]:
        return [build.body(*events, run=self.ref, buckets=self.buckets) for events in self.messages]

    @property
    def events(self) -> list[wire.Event]:
        return [event for message in self.messages for event in message]

    @property
    def steps(self) -> list[wire.Step]:
        """Each once."""
        by_id = {event.step_id: event for event in self.events if isinstance(event, wire.Step)}
        return list(by_id.values())

    @property
    def ended(self) -> bool:
        return any(isinstance(event, wire.RunEnded) for event in self.events)

    @property
    def conflicting(self) -> bool:
        """Whether another body came under an id that was taken: then the first to arrive stands."""
        steps = [event for event in self.events if isinstance(event, wire.Step)]
        return len({wire.encode_event(step) for step in steps}) > len(self.steps)


def draw(rng: random.Random, *, move: bool = False) -> list[Sent]:
    """One or two runs; two have the same id, under two tenants. Those that `move` have a second
    start oftener than others, which is on the day before."""
    tenants = TENANTS[: rng.choice((1, 1, 1, 2))]
    return [_run(rng, RunRef(tenant, "run-1"), move) for tenant in tenants]


def neighbour(rng: random.Random, *, move: bool = False) -> Sent:
    """A run whose id begins as another's does."""
    return _run(rng, RunRef(TENANTS[0], "run-10"), move)


def _run(rng: random.Random, ref: RunRef, move: bool) -> Sent:
    events: list[wire.Event] = [_step(rng, n) for n in range(1, rng.randint(2, 10))]
    events += [build.log(50 + n, *rng.choices(_TEXTS, k=2)) for n in range(rng.choice((0, 0, 1)))]
    for n in range(rng.choice((0, 1, 2, 2) if move else (0, 1, 1, 2))):
        # The earlier of two starts is the one that counts, and lets the run be silent for longer.
        patience = PATIENCE_S if n else None
        at = T0 - n * (DAY_S if move else 1) * SECOND
        events.append(build.started(at, pipeline=f"pipeline {n}", stale_after_s=patience))
    for n in range(rng.choice((0, 1, 1, 1, 2))):
        result = rng.choice((None, "done", "完" * 9))
        status = rng.choice(("succeeded", "failed", "cancelled"))
        events.append(build.ended(T0 + (100 + n) * SECOND, status=status, result=result))
    if rng.random() < 0.05:
        events.append(build.step(1, name="another body under the same id"))
    rng.shuffle(events)
    messages = _packed(rng, events)
    again = rng.sample(events, rng.randint(0, len(events)))  # packed anew, by another sender
    if again and rng.random() < 0.3:
        messages += _packed(rng, again)
    return Sent(ref, rng.choice((1, 1, 2, 3)), tuple(messages))


def _step(rng: random.Random, n: int) -> wire.Step:
    fields: dict[str, object] = {
        "phase": rng.choice((None, "plan", "act")),
        "status": rng.choice(("succeeded", "succeeded", "failed", "cancelled")),
        "cost_usd": rng.choice((None, "0.1", f"{n}.000000000000000001", "999999999999")),
        "input_tokens": rng.choice((None, n)),
        "name": rng.choice(_TEXTS) or None,
    }
    if n > 1 and rng.random() < 0.3:
        fields["parent_id"] = build.step_id(rng.randint(1, n))
    if rng.random() < 0.5:
        fields["payload"] = rng.choice(_TEXTS) * rng.randint(0, 50)
    return build.step(n, **fields)


def _packed(rng: random.Random, events: list[wire.Event]) -> list[tuple[wire.Event, ...]]:
    messages: list[tuple[wire.Event, ...]] = []
    rest = list(events)
    while rest:
        size = rng.randint(1, 4)
        messages.append(tuple(rest[:size]))
        rest = rest[size:]
    return messages
