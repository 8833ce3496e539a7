"""For how long an open run may be silent, before it is stale."""

from typing import Final

from functions.core.model import Start
from functions.core.times import SECOND

STALE_AFTER_S: Final = 3_600
"""For runs that do not say."""


def deadline_ns(start: Start) -> int:
    """What may lie between a run's newest event and the next."""
    seconds = STALE_AFTER_S if start.stale_after_s is None else start.stale_after_s
    return seconds * SECOND
