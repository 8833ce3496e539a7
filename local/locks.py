"""Locks between processes: held on an open file, and gone with their process, however it ends."""

import fcntl
from threading import Timer
from typing import IO, Any, Final, Literal

from local.progress import console

type Kind = Literal["shared", "exclusive"]

_KINDS: Final[dict[Kind, int]] = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX}
_TOLD_AFTER_S: Final = 1.0


def lock_now(file: IO[Any], kind: Kind) -> bool:
    """Whether the lock is had; it is not waited for."""
    try:
        fcntl.flock(file, _KINDS[kind] | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(file: IO[Any], kind: Kind, waiting: str) -> None:
    """Have the lock, once others let it go; says that it is `waiting` when that takes long.

    One of the other kind is let go first: whoever waits for it may come in between.
    """
    if lock_now(file, kind):
        return
    told = Timer(_TOLD_AFTER_S, console.print, [waiting], {"highlight": False})
    told.daemon = True
    told.start()
    try:
        fcntl.flock(file, _KINDS[kind])
    finally:
        told.cancel()
