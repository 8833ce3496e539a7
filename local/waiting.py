"""Waiting on conditions with a deadline: until runs are counted, until nothing happens any more."""

import time
from collections.abc import Callable, Iterable
from typing import Annotated, Final

from cyclopts import Parameter

from functions.api import shapes
from functions.core.keys import RunRef
from local import queues
from local.commands import LocalStageError
from local.emulator import LAST_LOG
from local.results import covers, read_run
from local.stage import Stage

_POLL_S: Final = 0.2
_QUIET_S: Final = 1.0
_LOOK_EVERY_S: Final = 1
_QUIET_LOOKS: Final = 60
"""SQS may take a minute to count what was sent last."""
_ADVICE: Final = (
    "The functions' output tells more: log.txt of the running emulator below build/, or "
    f"{LAST_LOG} of one that has ended."
)


Sleep = Annotated[Callable[[float], object], Parameter(parse=False)]
"""A command's own parameter for letting seconds pass, which no argument sets."""
Clock = Annotated[Callable[[], int], Parameter(parse=False)]
"""The same for what time it is, in nanoseconds since the epoch."""


def until[T](answer: Callable[[], T | None], within_s: float, failed: str) -> T:
    """The first answer that is not None. Raises LocalStageError, saying `failed`, without one."""
    deadline = time.monotonic() + within_s
    while (found := answer()) is None:
        if time.monotonic() > deadline:
            raise LocalStageError(f"{failed} within {within_s:g} s.", _ADVICE)
        time.sleep(_POLL_S)
    return found


def until_summarised(
    stage: Stage,
    expected: Iterable[tuple[RunRef, int]],
    within_s: float,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[shapes.ListedRun]:
    """The runs, each with an end and a summary that counts that many steps, in the order asked for.

    Raises LocalStageError at the deadline.
    """
    results: list[shapes.ListedRun] = []
    wanted = list(expected)

    def complete() -> bool | None:
        for ref, steps in wanted[len(results) :]:
            result = read_run(stage, ref)
            if result is None or not covers(result, steps):
                return None
            results.append(result)
            on_progress(len(results))
        return True

    try:
        until(complete, within_s, "The runs were not summarised")
    except LocalStageError as late:
        dead = queues.dead_letters(stage)
        raise LocalStageError(f"{late.failed} Dead letters: {dead}.", late.advice) from None
    return results


class UnderWay:
    """Whether more may come of what was sent to a stage. `before` is how many messages were
    unfinished when nothing was sent yet: those of others go on coming."""

    def __init__(self, stage: Stage, before: int, within_s: float, sleep: Sleep) -> None:
        self._stage = stage
        self._before = before
        self._sleep = sleep
        self._deadline = time.monotonic() + within_s
        self._quiet_looks = 0

    @property
    def messages(self) -> int:
        """Those that are unfinished beyond the ones before."""
        return max(0, queues.unfinished(self._stage) - self._before)

    @property
    def over(self) -> bool:
        """No more is waited for: time is up, or for a minute there have been none."""
        return self._quiet_looks >= _QUIET_LOOKS or time.monotonic() > self._deadline

    def pause(self) -> None:
        """Let a second pass; none once it is over."""
        if not self.over:
            self._sleep(_LOOK_EVERY_S)
            self._quiet_looks = 0 if self.messages else self._quiet_looks + 1


def until_quiet(stage: Stage, number: Callable[[], object], within_s: float) -> None:
    """Wait until the queues are empty and a number that only grows has stood still for a second."""
    seen: object = None
    since = time.monotonic()

    def quiet() -> bool | None:
        nonlocal seen, since
        now = (queues.unfinished(stage), number())
        if now != seen or now[0]:
            seen, since = now, time.monotonic()
        return True if time.monotonic() - since > _QUIET_S else None

    until(quiet, within_s, "The stage did not become quiet")
