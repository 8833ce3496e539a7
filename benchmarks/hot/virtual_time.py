"""Virtual time: what waits in it takes no time at all, and everything happens in order of time."""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import greenlet


class VirtualTime:
    """Seconds since the beginning. Work that waits lets other work go on; `run` ends when none is
    left."""

    def __init__(self) -> None:
        self.now = 0.0
        self._hub = greenlet.getcurrent()
        self._due: list[tuple[float, int, Any]] = []
        self._order = itertools.count()

    def spawn(self, work: Callable[[], object], after_s: float = 0) -> None:
        self._wake(greenlet.greenlet(work, self._hub), after_s)

    def sleep(self, seconds: float) -> None:
        self._wake(greenlet.getcurrent(), seconds)
        self._hub.switch()

    def run(self) -> None:
        """Raises what any work raises."""
        while self._due:
            self.now, _, thread = heapq.heappop(self._due)
            thread.switch()

    def _wake(self, thread: Any, after_s: float = 0) -> None:
        heapq.heappush(self._due, (self.now + after_s, next(self._order), thread))

    def _park(self) -> None:
        self._hub.switch()


class Pool:
    """An executor of so many threads, in virtual time."""

    def __init__(self, time: VirtualTime, threads: int) -> None:
        self._time = time
        self._idle = threads
        self._waiting: deque[Callable[[], None]] = deque()

    def map[A, B](self, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """Nothing that `work` raises is caught: what runs in a pool here answers with failures."""
        todo = list(items)
        answers: dict[int, B] = {}
        caller = greenlet.getcurrent()

        def one(number: int, item: A) -> None:
            answers[number] = work(item)
            if len(answers) == len(todo):
                self._time._wake(caller)

        for number, item in enumerate(todo):
            self._waiting.append(lambda number=number, item=item: one(number, item))  # type: ignore[misc]
        for _ in range(min(self._idle, len(self._waiting))):
            self._idle -= 1
            self._time.spawn(self._thread)
        if todo:
            self._time._park()
        return [answers[number] for number in range(len(todo))]

    def _thread(self) -> None:
        while self._waiting:
            self._waiting.popleft()()
        self._idle += 1
