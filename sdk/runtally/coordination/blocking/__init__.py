# Made from ../aio by `python -m tools.blocking`: change it there.
"""The primitives; `runtally.coordination` says what they do."""

from runtally.coordination.blocking.budget import Budget, Reservation
from runtally.coordination.blocking.coordinator import Coordinator, RunState
from runtally.coordination.blocking.scratchpad import Scratchpad
from runtally.coordination.blocking.slots import Lease, Semaphore, Slot

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
