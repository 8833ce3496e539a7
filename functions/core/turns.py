"""Whose turn it is, of what is come by far more often than it needs to be looked at."""

from typing import Final

from functions.core.times import SECOND

TURN_NS: Final = 61 * 60 * SECOND
"""An hour and a bit: no multiple of the time between two sweeps, so that whoever is come by only
every second or third time has a turn all the same."""


def has_turn(age_ns: int, every_s: int) -> bool:
    """True once in every 61 minutes of age, the first time at once, for who asks every `every_s`
    seconds."""
    return age_ns % TURN_NS < every_s * SECOND
