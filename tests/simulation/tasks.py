"""Tasks that take turns: whoever makes a request waits, and the schedule chooses who goes on."""

import random
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Any

import greenlet

_MOST_TURNS = 200_000


class Killed(BaseException):
    """The sandbox of an invocation is gone: no handler may catch this."""


@dataclass(eq=False)
class Sandbox:
    """What dies together: an invocation with all that it has under way at once."""

    dead: bool = False


@dataclass(eq=False)
class Task:
    work: Callable[[], None]
    weight: int
    sandbox: Sandbox | None = None
    thread: Any = field(init=False)
    idle_since: int = -1

    def __post_init__(self) -> None:
        self.thread = greenlet.greenlet(self.work)


class Tasks:
    """Runs tasks until none is left; between two turns nothing else happens."""

    def __init__(self, schedule: random.Random) -> None:
        self._schedule = schedule
        self._alive: list[Task] = []
        self._current: Task | None = None
        self._hub = greenlet.getcurrent()
        self._changes = 0
        self.turns = 0

    @property
    def current(self) -> Task:
        assert self._current is not None, "not within a task"
        return self._current

    def go_on_without(self, these: Set[Task]) -> bool:
        """Whether others are left."""
        return any(task not in these for task in self._alive)

    def spawn(self, work: Callable[[], None], sandbox: Sandbox | None = None) -> Task:
        task = Task(work, self._schedule.choice((1, 1, 3, 12)), sandbox)
        self._alive.append(task)
        return task

    def run(self) -> None:
        """Raises AssertionError when the tasks never come to an end."""
        while self._alive:
            self.turns += 1
            assert self.turns < _MOST_TURNS, "no progress: the tasks never come to rest"
            # Who found nothing to do looks again when something has happened.
            able = [task for task in self._alive if task.idle_since != self._changes] or self._alive
            (task,) = self._schedule.choices(able, [task.weight for task in able])
            self._current = task
            task.thread.switch()
            if task.thread.dead:
                self._alive.remove(task)
                self.changed()
        self._current = None

    def changed(self) -> None:
        """Something has happened that others may be waiting for."""
        self._changes += 1

    def idle(self) -> None:
        """Let others go on until something has happened."""
        self.current.idle_since = self._changes
        self.pause()

    def pause(self) -> None:
        """Let others go on. Raises Killed when the sandbox died meanwhile."""
        task = self._current
        if task is None or greenlet.getcurrent() is self._hub:
            return
        self._hub.switch()
        self._current = task
        if task.sandbox is not None and task.sandbox.dead:
            raise Killed

    def at_once[A, B](self, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """As an executor's map: all items at once, in the sandbox of whoever asks."""
        parent = self._current
        todo = list(items)
        if parent is None or len(todo) < 2:
            return [work(item) for item in todo]
        answers: dict[int, B] = {}
        sandbox = parent.sandbox or Sandbox()

        def one(index: int) -> None:
            try:
                answers[index] = work(todo[index])
            except Killed:
                sandbox.dead = True

        children = [self.spawn(lambda n=index: one(n), sandbox) for index in range(len(todo))]  # type: ignore[misc]
        while not all(child.thread.dead for child in children):
            self.idle()
        if sandbox.dead:
            raise Killed
        return [answers[index] for index in range(len(todo))]
