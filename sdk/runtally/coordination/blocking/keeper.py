"""Says in the background that this process is alive, for all that it holds in a run."""

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("runtally")


class Keeper:
    """A thread that beats for as long as `beat` says that there is something to say."""

    def __init__(self, beat: Callable[[], bool], interval_s: Callable[[], float]) -> None:
        self._beat = beat
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._woken = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        with self._lock:
            self._woken = True
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="runtally-coordination", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        heard = True
        while not self._stopped.wait(self._interval_s()):
            with self._lock:
                self._woken = False
            heard, goes_on = self._beaten(heard)
            with self._lock:
                if not goes_on and not self._woken:
                    self._thread = None
                    return

    def _beaten(self, heard_before: bool) -> tuple[bool, bool]:
        """Whether it was heard, and whether there is more to say."""
        try:
            return True, self._beat()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next beat may be heard
            # Whoever holds something learns it from `check`, in time.
            if heard_before:
                _log.warning("runtally: heartbeats go unheard: %s", error)
            return False, True
