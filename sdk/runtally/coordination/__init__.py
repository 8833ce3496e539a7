"""What the workers of one run share while it lasts, on a Valkey server, under a time to live.

    coordinator = Coordinator.from_environment()
    state = coordinator.join(run.run_id)
    with state.semaphore("model", 8).slot(wait_s=60), budget.reserve(most) as reservation: …

Scratchpad, leases with fencing numbers, semaphores, budgets, cancellation, heartbeats. Blocking
here, and under the same names for asyncio in `runtally.coordination.aio`. Needs the extra
`runtally[valkey]`. Nothing that is recorded depends on it.
"""

from runtally.coordination.blocking import (
    Budget,
    Coordinator,
    Lease,
    Reservation,
    RunState,
    Scratchpad,
    Semaphore,
    Slot,
)
from runtally.coordination.errors import (
    BudgetExceeded,
    Busy,
    Cancelled,
    CoordinationError,
    LimitsDiffer,
    NotHeld,
    StateLost,
    TooLong,
    Unavailable,
)
from runtally.coordination.fencing import fenced_put
from runtally.coordination.iam import ElastiCacheIam
from runtally.coordination.requests import Value

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Busy",
    "Cancelled",
    "CoordinationError",
    "Coordinator",
    "ElastiCacheIam",
    "Lease",
    "LimitsDiffer",
    "NotHeld",
    "Reservation",
    "RunState",
    "Scratchpad",
    "Semaphore",
    "Slot",
    "StateLost",
    "TooLong",
    "Unavailable",
    "Value",
    "fenced_put",
]
