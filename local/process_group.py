"""Ending a process together with everything that it started."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

_GONE_WITHIN_S: Final = 10


def kill_group(leader: int) -> None:
    """Return when no process of the group is left. Nothing in it gets to tidy up."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    deadline = time.monotonic() + _GONE_WITHIN_S
    while group_lives(leader):
        if time.monotonic() > deadline:
            raise TimeoutError(f"process group {leader} is still there")
        time.sleep(0.02)


def group_lives(leader: int) -> bool:
    """Whether a process of the group still runs; a zombie does not, and may never be reaped."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(leader, os.WNOHANG)
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    processes = list(Path("/proc").glob("[0-9]*/stat"))
    return not processes or any(_runs_in(leader, process) for process in processes)


def _runs_in(group: int, process: Path) -> bool:
    try:
        # The program's name, in brackets, may hold anything; state, parent and group follow.
        state, _, its_group, *_ = process.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(its_group) == group and state not in "ZX"
