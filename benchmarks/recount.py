"""A recount, as the function of the recount queue does it: by its real boto3 client, from a table
in another process.

CPU is that of this process, in rounds after one that made the connection; memory is the most that
it ever had, with Python, boto3 and the functions' code in it. Read units are those of strongly
consistent Queries, over sizes as AWS counts them.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks import aws_prices
from benchmarks.served import RUN, served_run
from functions.adapters import clients
from functions.adapters.settings import RecountSettings
from functions.summarize import recount_handler

ROUNDS: Final = {1_500: 9, 20_000: 5, 100_000: 3}
_KIB: Final = 1_024


def measure() -> dict[str, Any]:
    return {f"{steps:,}": _of(steps) for steps in ROUNDS}


def _of(steps: int) -> dict[str, Any]:
    with served_run(steps) as served:
        command = [sys.executable, "-m", "benchmarks.recount", str(steps)]
        made = subprocess.run(  # noqa: S603
            command, stdout=subprocess.PIPE, check=True, env=served.environment
        )
    usd = float(served.read_units * aws_prices.DYNAMODB_READ_UNIT)
    return {**json.loads(made.stdout), "read_units": served.read_units, "usd": usd}


def table(found: dict[str, Any]) -> str:
    line = (
        "  {steps:>7} steps: {cpu_ms_best:5,} ms of CPU at best, {cpu_ms_median:,} in the middle;"
        " {peak_mb} MB at most, {base_mb} before; {read_units:,} read units, ${usd:.4f}"
    )
    return "\n".join(line.format(steps=steps, **of) for steps, of in found.items())


def _measured(steps: int) -> dict[str, Any]:
    settings = RecountSettings("t", "b")
    made = (clients.dynamodb(), clients.s3(), clients.events)
    recount = recount_handler.recount_over(*made, settings).recount
    base = peak()
    took: list[float] = []
    for _ in range(1 + ROUNDS.get(steps, 1)):
        began = time.process_time()
        done = recount(RUN, None)
        took.append((time.process_time() - began) * 1_000)
        if done is None or done.steps != steps:
            raise AssertionError(f"not all {steps} steps were recounted: {done}")
    return {
        "cpu_ms_best": round(min(took[1:])),
        "cpu_ms_median": round(statistics.median(took[1:])),
        "base_mb": round(base),
        "peak_mb": round(peak()),
    }


def peak() -> float:
    """The most memory so far, in megabytes of 2**20. On Linux not getrusage's figure, which begins
    with what the process had that made this one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB
    (line,) = (each for each in status.read_text().splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) / _KIB


if __name__ == "__main__":
    json.dump(_measured(int(sys.argv[1])), sys.stdout)
