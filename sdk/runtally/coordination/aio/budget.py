"""Units that all workers of a run spend together, up to a limit."""

from types import TracebackType
from typing import TYPE_CHECKING

from runtally.coordination import requests
from runtally.coordination.errors import CoordinationError

if TYPE_CHECKING:
    from typing_extensions import Self

    from runtally.coordination.aio.coordinator import RunState


class Budget:
    """Never more than `limit` is spent, by however many workers and whatever gets lost on the way:
    an answer that did not arrive is asked for again, and counted once."""

    def __init__(self, state: "RunState", name: str, limit: int) -> None:
        self._state = state
        self.name = name
        self.limit = limit

    async def spend(self, units: int) -> int | None:
        """Spend them, and tell how many are left; None when it went unguarded.

        Raises BudgetExceeded, with nothing spent, when that would be over the limit.
        """
        return await self._spend(units, "")

    async def reserve(self, units: int) -> "Reservation":
        """Spend as many as a call may cost at most; `settle` gives back what it did not cost."""
        reservation = Reservation(self._state, self.name, units, requests.new_id())
        reservation.guarded = await self._spend(units, reservation.id) is not None
        return reservation

    async def spent(self) -> int:
        """All that was spent or is reserved."""
        return await self._state.ask(requests.spent(self.name, self.limit))

    async def left(self) -> int:
        return self.limit - await self.spent()

    async def _spend(self, units: int, reservation: str) -> int | None:
        requests.units_of("units", units)
        try:
            return await self._state.ask(requests.spend(self.name, self.limit, units, reservation))
        except CoordinationError as error:
            self._state.unguarded(error)
            return None


class Reservation:
    """Counts as spent in full until it is settled, so a worker that dies leaves the budget safe."""

    def __init__(self, state: "RunState", name: str, units: int, reservation_id: str) -> None:
        self._state = state
        self._name = name
        self.units = units
        self.id = reservation_id
        self.guarded = True
        """False for one that was let through while the server could not be asked."""

    async def settle(self, units: int) -> None:
        """What it came to, at most what was reserved; only the first settlement counts.

        Raises ValueError for more: then all of the reservation stays spent.
        """
        requests.units_of("units", units)
        if units > self.units:
            raise ValueError(
                f"{units} units were used of the budget {self._name!r}, {self.units} were reserved:"
                " reserve what a call can cost at most"
            )
        if not self.guarded:
            return
        try:
            await self._state.ask(requests.settle(self._name, self.id, units))
        except CoordinationError as error:
            self._state.unguarded(error)

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing: what is not settled stays spent."""
