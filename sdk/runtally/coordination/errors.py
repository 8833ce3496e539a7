"""What coordination cannot do, as it is told to a worker: each is a CoordinationError."""


class CoordinationError(Exception):
    """The common base; what a pipeline recorded is never touched by any of them."""


class Unavailable(CoordinationError):  # noqa: N818 - the fact, as the others
    """No answer from the server, several attempts included: what was asked may have been done."""


class StateLost(CoordinationError):  # noqa: N818
    """What the workers of the run shared is gone: flushed, evicted, expired, or lost in a failover.

    Nothing that counted on it may go on as if it were new. Whoever knows what was spent can
    `reopen` the run; until then every worker gets this error.
    """


class BudgetExceeded(CoordinationError):  # noqa: N818
    """The spend would have exceeded the limit and was not counted; `left` units are left."""

    def __init__(self, budget: str, units: int, left: int) -> None:
        super().__init__(f"budget {budget!r}: {units} units are asked for, {left} are left")
        self.budget, self.units, self.left = budget, units, left


class Busy(CoordinationError):  # noqa: N818
    """All slots were taken for as long as the caller would wait."""


class NotHeld(CoordinationError):  # noqa: N818
    """The lease or slot is held no longer: it lapsed, or was released; another may hold it now."""


class Cancelled(CoordinationError):  # noqa: N818
    """A worker asked all others of the run to stop; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the run is cancelled: {reason}")
        self.reason = reason


class LimitsDiffer(CoordinationError):  # noqa: N818
    """Another worker named another limit for the same budget or semaphore, and came first."""

    def __init__(self, name: str, mine: int, theirs: int) -> None:
        super().__init__(f"{name!r} has the limit {theirs} in this run, not {mine}")
        self.name, self.mine, self.theirs = name, mine, theirs


class TooLong(CoordinationError):  # noqa: N818
    """A value of the scratchpad would be longer than it may be, and stays as it was."""
