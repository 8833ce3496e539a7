"""Who may work now: one at a time, or so many."""

import logging
import random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from runtally.coordination import requests
from runtally.coordination.errors import Busy, CoordinationError, NotHeld, Unavailable
from runtally.coordination.fencing import FENCE, fenced_put
from runtally.coordination.holds import Hold

if TYPE_CHECKING:
    from typing_extensions import Self

    from runtally.coordination.aio.coordinator import RunState

_log = logging.getLogger("runtally")

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 0.5


class Semaphore:
    """At most `size` slots are held at a time; those of a worker that died come back after `ttl_s`
    seconds in which somebody waits for one."""

    def __init__(self, state: "RunState", name: str, size: int) -> None:
        self._state = state
        self.name = name
        self.size = size

    def slot(self, *, wait_s: float = 0.0) -> "Slot":
        """For `with`. Raises Busy when none is free for `wait_s` seconds."""
        return Slot(self._state, self.name, self.size, wait_s)


class Slot(Hold):
    """Taken by `with`, renewed in the background, given back at the end of it."""

    kind = "semaphore"
    exclusive = False
    """Whether one too many would do harm: then nobody goes unguarded, and a loss is an error."""

    def __init__(self, state: "RunState", name: str, size: int, wait_s: float) -> None:
        super().__init__(name, state.clock)
        self._state = state
        self._size = size
        self._wait_s = wait_s

    async def acquire(self) -> "Self":
        """Raises Busy, LimitsDiffer, Unavailable and StateLost; Cancelled when the run is cancelled
        while it waits."""
        self.begun(requests.new_id())
        give_up_at = self._state.clock.monotonic() + self._wait_s
        pause_s = _FIRST_PAUSE_S
        try:
            while not await self._taken():
                if self._state.clock.monotonic() >= give_up_at:
                    raise Busy(f"all of {self._size} of {self.name!r} are held")
                self._state.raise_if_cancelled()
                await self._state.clock.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        except CoordinationError as error:
            if self.exclusive:
                raise
            self._state.unguarded(error)
            self.guarded = False
        return self

    async def renew(self) -> None:
        """Now, and not by the background. Raises NotHeld when another may hold it."""
        self.check()
        asked_at = self._state.clock.monotonic()
        lost = await self._state.ask(requests.beat(None, [self.place]), anyway=True)
        if lost:
            self._state.let_go(self)
        else:
            self.renewed(asked_at, self._state.ttl_s)
        self.check()

    async def release(self) -> None:
        """Give it back. Raises NotHeld when it was held no longer; nobody else's is released."""
        was_held = self.held
        self._state.let_go(self)
        if not self.guarded:
            return
        released = await self._state.ask(requests.release(*self.place), anyway=True)
        if not (released and was_held):
            raise NotHeld(f"{self.name!r} was held no longer (fencing number {self.fence})")

    async def __aenter__(self) -> "Self":
        return await self.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.release()
        except Unavailable as unavailable:
            _log.warning("runtally: %r comes back when it lapses: %s", self.name, unavailable)
        except CoordinationError as lost:
            # An error of the work itself goes first.
            if self.exclusive and error is None:
                raise
            _log.warning("runtally: %s", lost)

    @property
    def place(self) -> tuple[str, str]:
        """Where the server has it: leases and semaphores may have the same name."""
        return f"{self.kind}:{self.name}", self.token

    async def _taken(self) -> bool:
        asked_at = self._state.clock.monotonic()
        fence = await self._state.ask(requests.acquire(*self.place, self._size))
        if fence is None:
            return False
        self.granted(fence, asked_at, self._state.ttl_s)
        if not self.held:  # the answer took as long as the slot may last
            await self._state.ask(requests.release(*self.place), anyway=True)
            return False
        self._state.keep(self)
        return True


class Lease(Slot):
    """Held by one worker at a time. `fence` is higher than that of every earlier holder: a store
    that compares it refuses the write of a holder that was stalled and does not know it yet."""

    kind = "lease"
    exclusive = True

    def fenced_put(self, put: dict[str, Any], attribute: str = FENCE) -> dict[str, Any]:
        """Arguments of boto3's `put_item` that a later holder's item refuses; see `fenced_put`."""
        self.check()
        return fenced_put(self.fence, put, attribute)
