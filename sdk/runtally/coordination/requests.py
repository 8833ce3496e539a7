"""One request of the script, what it asks and what its answer means: no connection, no waiting.

The script (`coordination.lua`) is the one place where something is decided; this module spells its
arguments and reads its answers for the synchronous and the asynchronous client alike.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from runtally.coordination.errors import BudgetExceeded, LimitsDiffer, StateLost, TooLong

MOST: Final = 2**53 - 1
"""The largest limit: the script computes in doubles, which are whole up to here."""
HIGHEST_FENCE: Final = 2**52
"""Of those that `reopen` takes: so many again may follow it."""
MOST_SLOTS: Final = 1_000
LONGEST_VALUE: Final = 1024 * 1024
LONGEST_REASON: Final = 1_024

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

T = TypeVar("T")
Says = Sequence[bytes]


@dataclass(frozen=True)
class Request(Generic[T]):
    """`once`: done twice it would show, so it gets a lane, in which the server does it once."""

    operation: str
    arguments: tuple[str | bytes, ...]
    read: Callable[[Says], T]
    once: bool = True


@dataclass
class Lane:
    """The server keeps the last answer of each lane. A request that comes again gets the answer
    that it got; one that was overtaken by the next of its lane is refused. `answered` is the last
    that an answer was read of: the server must know it, or it has lost what it said."""

    id: str
    count: int = 0
    answered: int = 0


@dataclass(frozen=True)
class Call:
    """A request as it is sent, however often: `arguments` follow the key."""

    lane: Lane | None
    arguments: tuple[str | bytes, ...]


@dataclass(frozen=True)
class Value:
    """A value of the scratchpad; `version` changes with every write, by whomever."""

    data: bytes
    version: str


@dataclass
class Session:
    """What one process knows of the state of a run: its epoch, how far it has seen it, and its
    lanes, in each of which one request follows the other. Thread-safe."""

    epoch: str
    ttl_s: float
    cancel_reason: str | None = None
    _seen: int = 0
    _free: list[Lane] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def call(self, request: Request[T]) -> Iterator[Call]:
        """While it lasts, no other request is in its lane."""
        with self._lock:
            seen = self._seen
            lane = (self._free.pop() if self._free else Lane(new_id())) if request.once else None
        numbers = ("", "0", "0")
        if lane is not None:
            lane.count += 1
            numbers = (lane.id, str(lane.count), str(lane.answered))
        head = (request.operation, self.epoch, str(seen), *numbers)
        try:
            yield Call(lane, (*head, *request.arguments))
        finally:
            if lane is not None:
                with self._lock:
                    self._free.append(lane)

    def result(self, request: Request[T], call: Call, answer: Says) -> T:
        """What the answer means. Raises what the request's reader raises, and StateLost."""
        if answer[0] != b"ok":
            raise StateLost(answer[1].decode())
        self.see(int(answer[1]))
        if call.lane is not None:
            call.lane.answered = call.lane.count
        # Answers may be read in another order than they were given in; a reason never goes.
        if answer[2]:
            self.cancel_reason = answer[2].decode(errors="replace")
        return request.read(answer[3:])

    def see(self, sequence: int) -> None:
        with self._lock:
            self._seen = max(self._seen, sequence)

    def forked(self) -> None:
        """In the child of a fork: the lanes are the parent's, and its threads may hold the lock."""
        self._free = []
        self._lock = threading.Lock()


def new_id() -> str:
    return os.urandom(8).hex()


def opening(
    how: str, ttl_s: float, keep_s: float, spent: Mapping[str, int], fence: int
) -> tuple[str | bytes, ...]:
    """What follows the key to `open` or `join` a run; `opened` reads the answer."""
    before = (part for name, units in spent.items() for part in (name, str(units)))
    ttl_ms, keep_ms = (str(round(seconds * 1_000)) for seconds in (ttl_s, keep_s))
    return (how, new_id(), "0", "", "0", "0", ttl_ms, keep_ms, str(fence), *before)


def opened(answer: Says) -> Session:
    """Raises StateLost when there is nothing to join."""
    if answer[0] != b"ok":
        raise StateLost(answer[1].decode())
    epoch, ttl_ms = answer[3].decode(), int(answer[4])
    session = Session(epoch, ttl_ms / 1_000, answer[2].decode(errors="replace") or None)
    session.see(int(answer[1]))
    return session


def key_of(tenant_id: str, run_id: str) -> str:
    """All of a run on one shard: a cluster places a key by what is in its braces."""
    return f"runtally:{{{tenant_id}/{run_id}}}"


def name_of(kind: str, name: str) -> str:
    """Raises ValueError for what cannot be a name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{kind} {name!r}: a name matches {_NAME.pattern}")
    return name


def units_of(what: str, units: int, most: int = MOST, least: int = 0) -> int:
    """Raises TypeError for what is no int, ValueError for what is out of range."""
    if type(units) is not int:
        raise TypeError(f"{what} is {units!r}: whole units only, an int")
    if not least <= units <= most:
        raise ValueError(f"{what} is {units}: it is {least} to {most}")
    return units


def acquire(place: str, token: str, size: int) -> Request[int | None]:
    """The fencing number of the slot, None when all are taken. `place` is a kind and a name."""

    def read(says: Says) -> int | None:
        _refuse_other_limit(place.partition(":")[2], size, says)
        return None if says[0] == b"busy" else int(says[1])

    return Request("acquire", (place, token, str(size)), read)


def release(place: str, token: str) -> Request[bool]:
    """Whether it was held."""
    return Request("release", (place, token), lambda says: says[0] == b"released")


def beat(worker: str | None, held: Sequence[tuple[str, str]]) -> Request[frozenset[str]]:
    """Say that a worker is alive and renew its slots, given by place and token: those held no
    longer come back."""
    slots = tuple(part for slot in held for part in slot)
    return Request(
        "beat",
        (worker or "", *slots),
        lambda says: frozenset(token.decode() for token in says),
        once=False,
    )


def workers() -> Request[dict[str, float]]:
    def read(says: Says) -> dict[str, float]:
        return {
            name.decode(): int(ms) / 1_000 for name, ms in zip(says[::2], says[1::2], strict=True)
        }

    return Request("workers", (), read, once=False)


def spend(name: str, limit: int, units: int, reservation: str = "") -> Request[int]:
    """How many units are left."""

    def read(says: Says) -> int:
        _refuse_other_limit(name, limit, says)
        if says[0] == b"exceeded":
            raise BudgetExceeded(name, units, int(says[1]))
        return int(says[1])

    return Request("spend", (name, str(limit), str(units), reservation), read)


def settle(name: str, reservation: str, units: int) -> Request[None]:
    # A reservation is settled once, however often that is asked for.
    return Request("settle", (name, reservation, str(units)), lambda _: None, once=False)


def spent(name: str, limit: int) -> Request[int]:
    def read(says: Says) -> int:
        _refuse_other_limit(name, limit, says)
        return int(says[1])

    return Request("balance", (name, str(limit)), read, once=False)


def cancel(reason: str) -> Request[None]:
    if not reason or len(reason) > LONGEST_REASON:
        raise ValueError(f"a reason has 1 to {LONGEST_REASON} characters")
    return Request("cancel", (reason,), lambda _: None, once=False)


def nothing() -> Request[None]:
    """For what every answer brings: whether the run is cancelled."""
    return Request("nothing", (), lambda _: None, once=False)


def get(name: str) -> Request[Value | None]:
    return Request(
        "get",
        (name,),
        lambda says: Value(bytes(says[1]), says[0].decode()) if says else None,
        once=False,
    )


def set_value(name: str, data: str | bytes) -> Request[str]:
    """The version that was written."""
    version = new_id()
    return Request("set", (name, _bytes(name, data), version), lambda _: version)


def compare_and_set(name: str, data: str | bytes, expected: str | None) -> Request[str | None]:
    """The version that was written; None when the value's version is another than expected."""
    version = new_id()
    return Request(
        "compare_and_set",
        (name, _bytes(name, data), version, expected or ""),
        lambda says: version if says[0] == b"set" else None,
    )


def append(name: str, data: str | bytes) -> Request[int]:
    """The length of the value, in bytes."""

    def read(says: Says) -> int:
        if says[0] == b"too long":
            raise TooLong(f"{name!r} would have {int(says[1])} bytes, over {LONGEST_VALUE}")
        return int(says[0])

    return Request("append", (name, _bytes(name, data), new_id(), str(LONGEST_VALUE)), read)


def delete(name: str) -> Request[None]:
    return Request("delete", (name,), lambda _: None)


def _refuse_other_limit(name: str, mine: int, says: Says) -> None:
    if says[0] == b"differs":
        raise LimitsDiffer(name, mine, int(says[1]))


def _bytes(name: str, data: str | bytes) -> bytes:
    written = data.encode() if isinstance(data, str) else data
    if len(written) > LONGEST_VALUE:
        raise TooLong(f"{name!r} would have {len(written)} bytes, over {LONGEST_VALUE}")
    return written
