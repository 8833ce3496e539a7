"""A sender that keeps what it is given, and events read the way ingest reads them."""

import threading
import time
from collections.abc import Callable, Sequence

from runtally import wire
from runtally.cuts import Sealed
from runtally.senders import Delivery


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait for another thread to bring a condition about; fails when it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.005)


class KeepingSender:
    """Accepts messages into a list, until it is told to be down, to refuse, or to hang."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.down = False
        self.refusing = False
        self.attempts: list[bytes] = []
        self.bodies: list[bytes] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.arrived = threading.Event()

    def send(self, messages: Sequence[Sealed]) -> Delivery:
        self.attempts += [message.body for message in messages]
        self.may_answer.wait(10)
        if self.down:
            return Delivery(unsent=list(messages), down=True)
        if self.refusing:
            return Delivery(refused=[(message, "for the test") for message in messages])
        self.bodies += [message.body for message in messages]
        self.arrived.set()
        return Delivery()

    @property
    def events(self) -> list[wire.Event]:
        return [event for body in self.bodies for event in events_of(body)]

    @property
    def steps(self) -> list[wire.Step]:
        return [event for event in self.events if isinstance(event, wire.Step)]

    @property
    def started(self) -> wire.RunStarted:
        (event,) = [event for event in self.events if isinstance(event, wire.RunStarted)]
        return event

    @property
    def ended(self) -> wire.RunEnded:
        (event,) = [event for event in self.events if isinstance(event, wire.RunEnded)]
        return event


def events_of(body: bytes) -> list[wire.Event]:
    """Opened by the very functions that ingest uses; raises Rejected when ingest would."""
    return [wire.decode_event(line, "") for line in wire.open_message(body.decode()).lines]
