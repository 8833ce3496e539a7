"""How old an event may be when it arrives: as old as a run may become."""

from functions.core.errors import Rejected
from functions.core.times import SECOND
from runtally.wire import Event, RunEnded, RunLog, RunStarted, Step

DAY_S = 86_400


def times_of(event: Event) -> dict[str, int]:
    """The times that an event tells, by field."""
    match event:
        case Step():
            return {"started_at": event.started_at, "ended_at": event.ended_at}
        case RunStarted() | RunLog() | RunEnded():
            return {"at": event.at}
    return {}


def refuse_if_expired(event: Event, field: str, now_ns: int, retention_days: int) -> None:
    """Raises Rejected for an event that would be stored only to expire at once."""
    horizon = now_ns - retention_days * DAY_S * SECOND
    for name, at in times_of(event).items():
        if at < horizon:
            detail = f"older than the retention of {retention_days} days"
            raise Rejected("too_old", f"{field}.{name}", detail)
