"""Hours in seconds: time that passes when nothing is left to do, and a worker's SDK in it."""

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any, Final, Self
from unittest import mock

from runtally import Recorder
from runtally.cuts import AFTER_S
from runtally.outbox import Outbox
from runtally.senders import SqsSender
from tests.memory_stage import NOW_NS

EVENTS_URL: Final = "memory://events"
_NS: Final = 1_000_000_000
_BOOTED_NS: Final = NOW_NS - 3_600 * _NS
"""No real clock that is never set back shows 0 while a program runs."""


class VirtualTime:
    """Does what is due, in order, and is then. Within a `with` block it is the time of `time`."""

    def __init__(self) -> None:
        self.now_ns = NOW_NS
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._number = itertools.count()
        self._patches = mock.patch.multiple(
            "time",
            time_ns=lambda: self.now_ns,
            monotonic_ns=lambda: self.now_ns - _BOOTED_NS,
            monotonic=self.monotonic,
        )

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        due = self.now_ns + math.ceil(seconds * _NS)
        heapq.heappush(self._due, (due, next(self._number), act))

    def run(self) -> None:
        """Until nothing is left to do."""
        while self._due:
            self.now_ns, _, act = heapq.heappop(self._due)
            act()

    @property
    def passed_s(self) -> float:
        return (self.now_ns - NOW_NS) / _NS

    def monotonic(self) -> float:
        return (self.now_ns - _BOOTED_NS) / _NS

    def __enter__(self) -> Self:
        self._patches.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.stop()


def sqs_sender(sqs: Any, s3: Any) -> SqsSender:
    """The SDK's own, over fakes."""
    return SqsSender(EVENTS_URL, "bucket", sqs=sqs, s3=s3)


class _Outbox(Outbox):
    """The SDK's own, without its thread: its work is done when virtual time says so."""

    def _start_thread(self) -> None:
        """No thread: see Worker.turn."""


class Worker:
    """A process with a Recorder of its own. `sent` is told after each of its requests."""

    def __init__(
        self,
        time: VirtualTime,
        sqs: Any,
        s3: Any,
        sent: Callable[[], object],
        send_after_s: float = AFTER_S,
    ) -> None:
        self.recorder = Recorder(tenant_id="acme", sender=sqs_sender(sqs, s3))
        self._outbox = self.recorder._outbox = _Outbox(
            self.recorder._outbox._courier, send_after_s=send_after_s
        )
        self._time = time
        self._sent = sent
        self._next_turn = 0.0

    def turn(self) -> None:
        """What the thread does when it is woken, and when the pause that it made is over."""
        while self._outbox._has_work():
            self._deliver()
        due = self._outbox._packer.next_due()
        if due is not None and due != self._next_turn:
            self._next_turn = due
            # A little later: a sum of seconds may lack the last digit.
            self._time.after(due - self._time.monotonic() + 1e-6, self._deliver_due)

    def _deliver_due(self) -> None:
        self._deliver()
        self.turn()

    def _deliver(self) -> None:
        self._outbox._deliver_due()
        self._sent()
