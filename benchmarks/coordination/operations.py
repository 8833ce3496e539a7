"""What is timed: each primitive, and the bare call of the client that comes nearest to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import valkey

from runtally.coordination import Coordinator, RunState
from runtally.coordination.requests import MOST

TENANT: Final = "benchmark"
_SLOTS: Final = 8
_TTL_S: Final = 300
_VALUE: Final = b"x" * 100
_PIECE: Final = b"x" * 16


@dataclass(frozen=True, slots=True)
class Operation:
    """`before` is done before each round, and is not in the time."""

    name: str
    work: Callable[[], object]
    before: Callable[[], object] = lambda: None


type Pair = tuple[Operation, Operation]


def coordinator(url: str) -> Coordinator:
    """That renews nothing by itself: only what is timed shall happen."""
    return Coordinator(tenant_id=TENANT, url=url, ttl_s=_TTL_S, background=False)


def pairs(state: RunState, bare: valkey.Valkey, client: int) -> list[Pair]:
    """Ours and bare. Budget, semaphore and counter are everybody's; what only one can hold, and
    values, each client has for itself."""
    budget, pad = state.budget("cost", MOST), state.scratchpad
    semaphore = state.semaphore("model", _SLOTS)
    held = state.semaphore(f"held-{client}", _SLOTS)
    for _ in range(_SLOTS):
        held.slot().acquire()
    values, log, own = f"values-{client}", f"log-{client}", f"bare-{client}"
    pad.set(values, _VALUE)
    bare.set(own, _VALUE)

    def reserve_and_settle() -> None:
        budget.reserve(100).settle(60)

    def lease() -> None:
        with state.lease(f"lease-{client}"):
            pass

    def slot() -> None:
        with semaphore.slot():
            pass

    def count_twice() -> None:
        bare.hincrby("bare", "cost", 100)
        bare.hincrby("bare", "cost", -40)

    def lock() -> None:
        bare.set(f"lock-{client}", own, nx=True, px=30_000)
        bare.delete(f"lock-{client}")

    locked = Operation("SET NX PX, DEL", lock)
    return [
        (
            Operation("spend", lambda: budget.spend(1)),
            Operation("HINCRBY", lambda: bare.hincrby("bare", "cost", 1)),
        ),
        (Operation("reserve, settle", reserve_and_settle), Operation("HINCRBY twice", count_twice)),
        (Operation("slot", slot), locked),
        (Operation("lease", lease), locked),
        (
            Operation(f"beat with {_SLOTS} slots", state.beat),
            Operation("SET PX", lambda: bare.set(f"beat-{client}", own, px=30_000)),
        ),
        (
            Operation("scratchpad.get", lambda: pad.get(values)),
            Operation("GET", lambda: bare.get(own)),
        ),
        (
            Operation("scratchpad.set", lambda: pad.set(values, _VALUE)),
            Operation("SET", lambda: bare.set(own, _VALUE)),
        ),
        (
            Operation(
                "scratchpad.append", lambda: pad.append(log, _PIECE), lambda: pad.delete(log)
            ),
            Operation(
                "APPEND",
                lambda: bare.append(f"log-{client}", _PIECE),
                lambda: bare.delete(f"log-{client}"),
            ),
        ),
        (Operation("cancelled", state.cancelled), Operation("PING", bare.ping)),
    ]
