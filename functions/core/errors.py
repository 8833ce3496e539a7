"""The two ways in which work fails; a handler has one branch for each."""

from runtally.wire import Rejected

__all__ = ["Rejected", "Unavailable"]


class Unavailable(Exception):  # noqa: N818 - the fact, as the handlers read it
    """A service did not answer, or answered that it cannot now. Nothing is settled; trying again is
    safe."""
