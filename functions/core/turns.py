"""Whose turn it is, of what is come by far more often than it needs to be looked at."""

from typing import Final

from functions.core.times import SECOND

TURN_NS: Final = 61 * 60 * SECOND
"""An hour and a bit: no multiple of the time between two sweeps, so that not all that began on the
hour has its turn with the same one."""


def has_turn(age_ns: int, apart_ns: int) -> bool:
    """True once in every 61 minutes of age, the first time at once, for who came by `apart_ns` ago;
    twice for who came by later than that, and never not at all."""
    return age_ns % TURN_NS < apart_ns
