"""Between the agent's threads and the sender: packs lines into messages and sends them in the
background.

What cannot be sent goes to the spool; what the spool cannot take stays in memory; when memory is
full too, the agent's thread waits, up to 30 seconds an outage, and only then is an event lost:
counted, logged, reported.
"""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtally import lifetime, wire
from runtally.courier import Courier
from runtally.cuts import AFTER_S, Cut, Packer, Sealed

if TYPE_CHECKING:
    from runtally.redaction import Redactor

_log = logging.getLogger("runtally")

MEMORY_BYTES: Final = 64 * 1024 * 1024
BLOCK_S: Final = 30.0
_CHUNK: Final = 10


@dataclass(frozen=True, slots=True)
class Unsent:
    """What a flush left behind; false when that is nothing. `lost` counts events since the last
    flush.
    """

    messages: int = 0
    events: int = 0
    lost: int = 0

    def __bool__(self) -> bool:
        return bool(self.messages or self.lost)


class Outbox:
    """Thread-safe. One lock guards the buffers, another lets one thread deliver at a time."""

    def __init__(
        self,
        courier: Courier,
        *,
        redactor: "Redactor | None" = None,
        send_after_s: float = AFTER_S,
        memory_bytes: int = MEMORY_BYTES,
        block_s: float = BLOCK_S,
    ) -> None:
        self._courier = courier
        self.redactor = redactor
        """What events go through before they become lines."""
        self._send_after_s = send_after_s
        self._memory_bytes = memory_bytes
        self._block_s = block_s
        self.begin()

    def begin(self) -> None:
        """Empty, and without a thread: as made, and as a forked child finds it. What was in here at
        the fork is the parent's to send.
        """
        self._state = threading.Condition()
        self._delivering = threading.Lock()
        self._packer = Packer(self._send_after_s)
        self._cuts: list[Cut] = []
        self._ready: list[Sealed] = []
        self._held = 0
        self._lost = 0
        self._loss_logged_at = -math.inf
        self._full_since: float | None = None
        self._asked = self._served = 0
        self._more_on_disk = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, head: wire.Head, line: bytes, *, at_once: bool = False) -> None:
        """Take an event's line. Waits while memory is full, then loses the line if it stays so."""
        with self._state:
            if not self._wait_for_room():
                self._lose(1, "memory and spool are full")
                return
            self._held += len(line)
            fresh = self._packer.next_due() is None
            cuts = self._packer.add(head, line, time.monotonic(), at_once=at_once)
            self._cuts += cuts
            self._start_thread()
            if cuts or fresh:
                self._state.notify_all()

    @property
    def limit_bytes(self) -> int | None:
        """The largest body that can be sent."""
        return self._courier.limit_bytes

    @property
    def full(self) -> bool:
        """Whether `add` would have to wait."""
        return self._held >= self._memory_bytes

    def count_lost(self, events: int, why: str) -> None:
        with self._state:
            self._lose(events, why)

    def flush(self, timeout: float) -> Unsent:
        """Send everything now, the spool included, and return what is left after `timeout` seconds.

        What is left is on disk by then, if there is a spool with room, and in memory otherwise.
        """
        with self._state:
            self._asked += 1
            ticket = self._asked
            self._start_thread()
            alive = self._thread is not None
            self._state.notify_all()
            done = alive and self._state.wait_for(lambda: self._served >= ticket, timeout)
        if not alive:  # the interpreter is shutting down and starts no thread any more
            self._deliver_all(ticket)
        elif not done:
            self._spool_all()
        return self._report()

    def close(self, timeout: float) -> Unsent:
        """Flush, and end the background thread. What is added later is sent by a new one."""
        unsent = self.flush(timeout)
        with self._state:
            self._closed = True
            self._state.notify_all()
        return unsent

    # --- the agent's side, under the lock ---

    def _wait_for_room(self) -> bool:
        if not self.full:
            self._full_since = None
            return True
        now = time.monotonic()
        if self._full_since is None:
            self._full_since = now
        self._cuts += self._packer.take_all()
        self._state.notify_all()
        # One budget an outage: an agent of a thousand steps must not wait a thousand times.
        patience = self._full_since + self._block_s - now
        return self._state.wait_for(lambda: not self.full, max(0.0, patience))

    def _lose(self, events: int, why: str) -> None:
        self._lost += events
        now = time.monotonic()
        if now - self._loss_logged_at >= 1:  # in an outage each step is one; the count says it all
            self._loss_logged_at = now
            _log.error("runtally: %d events are lost so far: %s", self._lost, why)

    def _start_thread(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self._closed = False
        self._thread = None
        lifetime.open_outboxes.add(self)
        thread = threading.Thread(target=self._work, name="runtally", daemon=True)
        with contextlib.suppress(RuntimeError):  # at shutdown; `flush` does the work itself then
            thread.start()
            self._thread = thread

    # --- the background thread ---

    def _work(self) -> None:
        while True:
            with self._state:
                if not self._has_work():
                    self._state.wait(self._pause())
                ticket = self._asked
                flushing = ticket > self._served
                if self._closed and not flushing and not self._held:
                    self._thread = None
                    lifetime.open_outboxes.discard(self)
                    return
            try:
                if flushing:
                    self._deliver_all(ticket)
                else:
                    self._deliver_due()
            except Exception:  # noqa: BLE001 - without this thread nothing would be sent any more
                _log.exception("runtally: delivering failed; it goes on in a moment")
                self._courier.back_off()

    def _has_work(self) -> bool:
        done = self._closed and not self._held
        return bool(self._cuts) or self._more_on_disk or done or self._asked > self._served

    def _pause(self) -> float | None:
        """Seconds until something is due by time; None when nothing is."""
        times = [t for t in (self._packer.next_due(), self._courier.retry_at) if t is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _deliver_due(self) -> None:
        with self._delivering:
            self._seal(everything=False)
            self._settle(self._courier.deliver)
            self._more_on_disk = self._courier.drain_some()

    def _deliver_all(self, ticket: int) -> None:
        with self._delivering:
            try:
                self._courier.retry_now()
                self._seal(everything=True)
                self._settle(self._courier.deliver)
                while self._courier.drain_some():
                    pass
            finally:
                with self._state:
                    self._served = max(self._served, ticket)
                    self._state.notify_all()

    def _spool_all(self) -> None:
        # Not under the delivering lock, which a request that hangs may hold for long. Should that
        # request succeed after all, the message is sent twice: the same bytes, so no harm.
        self._seal(everything=True)
        self._settle(self._courier.keep)

    def _seal(self, *, everything: bool) -> None:
        with self._state:
            packer = self._packer
            self._cuts += packer.take_all() if everything else packer.take_due(time.monotonic())
            cuts, self._cuts = self._cuts, []
            for cut in cuts:
                sealed = cut.seal()
                self._held += len(sealed.body) - cut.size
                self._ready.append(sealed)

    def _settle(self, dispose: Callable[[list[Sealed]], list[Sealed]]) -> None:
        """Hand sealed messages over, a few at a time; what `dispose` returns stays in memory."""
        waiting = list(self._ready)
        for start in range(0, len(waiting), _CHUNK):
            chunk = waiting[start : start + _CHUNK]
            left = dispose(chunk)
            settled = {id(message) for message in chunk} - {id(message) for message in left}
            with self._state:
                gone = [message for message in self._ready if id(message) in settled]
                self._ready = [message for message in self._ready if id(message) not in settled]
                self._held -= sum(len(message.body) for message in gone)
                self._state.notify_all()

    def _report(self) -> Unsent:
        messages, events = self._courier.spooled()
        with self._state:
            lost, self._lost = self._lost + self._courier.take_refused(), 0
            return Unsent(
                messages=messages + len(self._ready),
                events=events + sum(message.events for message in self._ready),
                lost=lost,
            )
