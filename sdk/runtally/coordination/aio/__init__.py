"""The primitives; `runtally.coordination` says what they do."""

from runtally.coordination.aio.budget import Budget, Reservation
from runtally.coordination.aio.coordinator import Coordinator, RunState
from runtally.coordination.aio.scratchpad import Scratchpad
from runtally.coordination.aio.slots import Lease, Semaphore, Slot

__all__ = [
    "Budget",
    "Coordinator",
    "Lease",
    "Reservation",
    "RunState",
    "Scratchpad",
    "Semaphore",
    "Slot",
]
