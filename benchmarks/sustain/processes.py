"""Memory and CPU of this process, and of all in the embedded AWS's process group, over time.

As /proc says: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
"""

import os
import statistics
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.missing import NotHere

EMBEDDED_AWS: Final = "the embedded AWS"
_PROC: Final = Path("/proc")
_EVERY_S: Final = 5
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_OWN: Final = "this process (the Recorders)"


class Watch:
    """Looks every few seconds, within a `with` block. Raises NotHere without /proc."""

    def __init__(self, group: int) -> None:
        if not (_PROC / "self" / "status").exists():
            raise NotHere("there is no /proc: memory of processes is read on Linux alone")
        self._group = group
        self._seen: dict[int, list[tuple[float, float, float]]] = {}
        self._names: dict[int, str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.look()

    def look(self) -> None:
        now = time.monotonic()
        for process in [os.getpid(), *_members(self._group)]:
            try:
                seen = (now, _resident_mb(process), _cpu_s(process))
                self._names.setdefault(process, self._name(process))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile
            self._seen.setdefault(process, []).append(seen)

    def figures(self) -> list[dict[str, Any]]:
        """Of each process that was there for more than a look, the busiest first. Growth is the
        slope of its second half: what is loaded and filled first is no leak."""
        found = []
        for process, seen in self._seen.items():
            if len(seen) < 4:
                continue
            times, memory, cpu = zip(*seen, strict=True)
            half = len(seen) // 2
            growth = statistics.linear_regression(times[half:], memory[half:]).slope
            found.append(
                {
                    "name": self._names[process],
                    "mb_by_minute": _last_by_minute(times, memory),
                    "mb_per_minute": round(growth * 60, 2),
                    "cpu_percent": round(100 * (cpu[-1] - cpu[0]) / (times[-1] - times[0]), 1),
                }
            )
        return sorted(found, key=lambda one: -one["cpu_percent"])

    def _name(self, process: int) -> str:
        if process == os.getpid():
            return _OWN
        if process == self._group:
            return EMBEDDED_AWS
        environment = (_PROC / str(process) / "environ").read_bytes().split(b"\0")
        variables = dict(one.decode().partition("=")[::2] for one in environment if one)
        named = variables.get("AWS_LAMBDA_FUNCTION_NAME") or variables.get(
            "POWERTOOLS_SERVICE_NAME"
        )
        return f"{_short(named)} {process}" if named else f"process {process}"


def _short(function: str) -> str:
    """`ingest` of `runtally-local-pipeline-IngestFunctionB02ED0EB-…`."""
    return function.rpartition("Function")[0].rpartition("-")[2].lower() or function


def _members(group: int) -> list[int]:
    found = []
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            # The program's name, in brackets, may hold anything; state, parent and group follow.
            its_group = int(stat.read_text().rpartition(")")[2].split()[2])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if its_group == group:
            found.append(int(stat.parent.name))
    return found


def _resident_mb(process: int) -> float:
    for line in (_PROC / str(process) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(process)  # a zombie has none


def _cpu_s(process: int) -> float:
    after_name = (_PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    user, system = after_name[11:13]
    return (int(user) + int(system)) / _TICKS


def _last_by_minute(times: tuple[float, ...], memory: tuple[float, ...]) -> list[float]:
    minutes = {
        int((at - times[0]) // 60): round(mb, 1) for at, mb in zip(times, memory, strict=True)
    }
    return list(minutes.values())
