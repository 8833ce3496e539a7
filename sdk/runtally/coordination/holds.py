"""Whether a lease or a slot is still held, told without asking anybody."""

from typing import Final, Protocol

from runtally.coordination.errors import NotHeld

BEATS_A_TTL: Final = 6
BELIEVED: Final = 0.7
"""Of the time to live, counted from before it was asked for. The server's own clock may run ahead
by a quarter when it is stepped; the rest is for clocks that do not tick alike."""


class Ticks(Protocol):
    """A clock that only goes forward, in seconds."""

    def monotonic(self) -> float: ...


class Hold:
    """One holder's claim: `token` names it, `fence` orders it among all that ever held the name.

    Where the process stood still for longer than the time to live, it is held no longer, and
    `check` says so before anything is asked of the server. A machine that slept may have a clock
    that slept with it: what must never be done by two checks `fence` where it is written.
    """

    def __init__(self, name: str, ticks: Ticks) -> None:
        self.name = name
        self.token = ""
        self.fence = 0
        self.guarded = True
        """False for one that was let through while the server could not be asked."""
        self._ticks = ticks
        self._until = 0.0
        self._is_over = True

    @property
    def held(self) -> bool:
        return not self._is_over and (not self.guarded or self._ticks.monotonic() < self._until)

    def check(self) -> None:
        """Raises NotHeld when another may hold it by now."""
        if not self.held:
            raise NotHeld(f"{self.name!r} is held no longer (fencing number {self.fence})")

    def begun(self, token: str) -> None:
        self.token, self.fence, self.guarded = token, 0, True
        self._until, self._is_over = 0.0, False

    def granted(self, fence: int, asked_at: float, ttl_s: float) -> None:
        self.fence = fence
        self.renewed(asked_at, ttl_s)

    def renewed(self, asked_at: float, ttl_s: float) -> None:
        self._until = max(self._until, asked_at + ttl_s * BELIEVED)

    def ended(self) -> None:
        """Whatever answer is still on its way."""
        self._is_over = True
