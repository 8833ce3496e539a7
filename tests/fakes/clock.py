"""A clock that stands still until the test moves it."""

import threading

from runtally.lease import Clock


class MemoryClock(Clock):
    """Time passes when the test's own thread waits, or says so; other threads wait for it."""

    def __init__(self, now_s: int = 1_795_984_949) -> None:
        self._now_ns = now_s * 10**9
        self._owner = threading.current_thread()
        self.pauses: list[float] = []
        """What the test's own thread waited for."""
        self.waiting = 0
        """How many other threads wait."""

    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, seconds: float) -> None:
        self._now_ns += int(seconds * 10**9)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if threading.current_thread() is self._owner:
            if event.is_set():
                return True
            self.pauses.append(seconds)
            self.advance(seconds)
            return False
        due = self._now_ns + int(seconds * 10**9)
        self.waiting += 1
        while self._now_ns < due and not event.wait(0.001):
            pass
        self.waiting -= 1
        return event.is_set()
