"""What a request may meet: each kind of fault, where it can happen, and which one happens now."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ReadTimeoutError

from tests.fakes.calls import client_error
from tests.simulation.tasks import Killed, Tasks

BEFORE: Final = ("error before", "kill before")
AFTER: Final = ("answer lost", "kill after")
OWN: Final = "own condition"
BURST: Final = "throttled burst"
SLOW_DOWN: Final = "slow down"
CONFLICT: Final = "conflict"

_CONDITIONAL: Final = frozenset({"put_item", "update_item", "put_object"})
_WRITES: Final = _CONDITIONAL | {
    "send_message", "put_events", "batch_write_item", "delete_objects",
}  # fmt: skip


def kinds_of(label: str) -> tuple[str, ...]:
    """The faults that a request of this label can meet."""
    service, _, operation = label.partition(" ")[0].partition(".")
    kinds = BEFORE + (AFTER if operation in _WRITES else ())
    if operation in _CONDITIONAL:
        kinds += (OWN,)
    if service == "dynamodb":
        kinds += (BURST,)
    if service == "s3":
        kinds += (SLOW_DOWN,)
    if operation == "put_object":
        kinds += (CONFLICT,)
    return kinds


@dataclass
class Faults:
    """Chooses a fault for some requests, until there were as many as the schedule may have.

    `only` are the numbers of the requests whose fault stays, when a violation is made smaller; the
    others go well then, and the same numbers are drawn all the same.
    """

    draw: random.Random
    rate: float
    most: int
    only: frozenset[int] | None = None
    seen: int = 0
    happened: list[tuple[int, str, str]] = field(default_factory=list)
    _throttled: int = 0

    def stop(self) -> None:
        """From now on every request goes well."""
        self.most = self._throttled = 0

    def next_for(self, label: str) -> str | None:
        self.seen += 1
        if self._throttled and label.startswith("dynamodb."):
            self._throttled -= 1
            return "error before"
        chance, kind = self.draw.random(), self.draw.choice(kinds_of(label))
        length = self.draw.randint(5, 40)
        if chance >= self.rate or len(self.happened) >= self.most:
            return None
        if self.only is not None and self.seen not in self.only:
            return None
        if kind == BURST:
            self._throttled = length
        self.happened.append((self.seen, label, kind))
        return kind


class Network:
    """Every request goes through here: it waits for its turn, and may meet a fault."""

    def __init__(self, tasks: Tasks, faults: Faults, coverage: Counter[str]) -> None:
        self._tasks = tasks
        self._faults = faults
        self._coverage = coverage
        self.after_each: Callable[[str], None] = lambda label: None
        self.calls = 0

    def client(self, service: str, fake: Any, *, spared: bool = False) -> "Client":
        """`spared`: its requests meet no fault, so that there are more for others."""
        return Client(self, service, fake, spared)

    def request[T](self, label: str, apply: Callable[[], T], *, spared: bool) -> T:
        self.calls += 1
        self._tasks.changed()
        self._tasks.pause()
        fault = None if spared else self._faults.next_for(label)
        self._coverage[f"{label}/{fault or 'none'}"] += 1
        if fault == "kill before":
            raise Killed(label)
        if fault in {"error before", BURST, SLOW_DOWN, CONFLICT}:
            raise client_error(label, _CODES.get(fault, "InternalServerError"))
        try:
            answer = apply()
            if fault == OWN:  # the SDK did not get the answer, and tried again by itself
                answer = apply()
        finally:
            self.after_each(label)
        self._tasks.pause()
        if fault == "kill after":
            raise Killed(label)
        if fault == "answer lost":
            raise ReadTimeoutError(endpoint_url=label)
        return answer


_CODES: Final = {
    BURST: "ProvisionedThroughputExceededException",
    SLOW_DOWN: "SlowDown",
    CONFLICT: "ConditionalRequestConflict",
}


@dataclass(frozen=True, slots=True)
class Client:
    """A fake of AWS at boto3's client interface, behind the network."""

    network: Network
    service: str
    fake: Any
    spared: bool

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        make = getattr(self.fake, operation)

        def call(**request: Any) -> Any:
            label = f"{self.service}.{operation}{_what(request)}"
            return self.network.request(label, lambda: make(**request), spared=self.spared)

        return call


def _what(request: dict[str, Any]) -> str:
    """Which kind of item, object or queue: each is written by other code."""
    if {"RequestItems", "Entries"} & request.keys():
        return ""
    if "Delete" in request:
        request = request["Delete"]["Objects"][0]
    if "Prefix" in request:
        return f" {request['Prefix'].partition('/')[0]}"
    if "Item" in request or "Key" in request:
        key = request.get("Item") or request["Key"]
        if isinstance(key, str):
            return f" {key.partition('/')[0].partition('-')[0]}"
        return f" {key['SK']['S'].partition('#')[0]}"
    if "QueueUrl" in request:
        return f" {request['QueueUrl'].rpartition('/')[2]}"
    first = request["ExpressionAttributeValues"][":first"]["S"]
    return f" {first.partition('#')[0]}"
