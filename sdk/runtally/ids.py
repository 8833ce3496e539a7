"""Ids of steps and log lines, made by the sender: they identify, and they sort by time."""

import os
import threading
import time

_SUFFIX_BYTES = 4


class IdClock:
    """Makes ids whose nanoseconds strictly increase in this process.

    Whatever the clock does: two threads that ask at once, a coarse clock, one that is set back.
    Across processes the random suffix tells ids of one nanosecond apart.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new_id(self) -> str:
        """19 digits of nanoseconds, `-`, 8 hex digits."""
        with self._lock:
            self._last = now = max(self._last + 1, time.time_ns())
        # Straight from the system, which a forked child or a restored snapshot does not repeat.
        return f"{now:019d}-{os.urandom(_SUFFIX_BYTES).hex()}"

    def renew_lock(self) -> None:
        """In a forked child: the thread that held the lock may not exist here."""
        self._lock = threading.Lock()


_clock = IdClock()
new_id = _clock.new_id

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.renew_lock)
