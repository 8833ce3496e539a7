"""What recording a step costs a CPU: `python -m benchmarks cpu`.

The function ingest as Lambda wires it, with its own clients, over a stub of S3 and DynamoDB
that answers at once from another process; a step carries a payload of 4 KB. Beside it, over the
same stub: boto3 put by put with its defaults, and the requests alone, signed by hand.

Instructions come from callgrind, as the difference of a short and a long work, so that imports,
clients, connections and threads fall out; CPU time from rounds that take turns, all threads and the
kernel's share included. The stub speaks plain HTTP: encryption is in none of the figures.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from benchmarks.cpu.stub import answering
from benchmarks.cpu.ways import ENVIRONMENT, NAIVE, PAYLOAD_BYTES, WAYS, Message, batches, recording
from benchmarks.instructions import Work, of_works
from local.paths import ROOT

BAR: Final = 0.40
"""Of naive's instructions a step, packed by ten."""

_WARMING_STEPS: Final = 20
_STEPS: Final = 50
_ROUNDS: Final = 10


def works() -> dict[str, Work]:
    """Of each way a short work and a long one."""
    made: dict[str, Work] = {}
    for number, way in enumerate(WAYS):
        record = recording(way)
        warming, measured = batches(way, _WARMING_STEPS), batches(way, _STEPS)
        made[f"{number} short"] = partial(_do, record, warming)
        made[f"{number} long"] = partial(_do, record, warming + measured)
    return made


def _do(record: Any, these: Iterable[list[Message]]) -> None:
    for batch in these:
        record(batch)


def timed() -> None:
    """Print microseconds of CPU a step, for each way those of every round."""
    recordings = [(way, recording(way), batches(way, _STEPS)) for way in WAYS]
    times: list[list[float]] = [[] for _ in WAYS]
    for turn in range(_ROUNDS + 1):
        for (way, record, these), taken in zip(recordings, times, strict=True):
            began = time.process_time()
            _do(record, these)
            if turn:  # the first makes connections and threads
                taken.append((time.process_time() - began) * 1e6 / (len(these) * way.steps))
    sys.stderr.write(json.dumps(times))


def measure() -> dict[str, Any]:
    with answering() as endpoint:
        environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": endpoint}
        totals = of_works("benchmarks.cpu:works", environment)
        times = _times(environment)
    found = {
        way: {
            **way._asdict(),
            "instructions": (totals[f"{number} long"] - totals[f"{number} short"])
            // (-(-_STEPS // way.steps) * way.steps),
            "cpu_us_best": round(min(times[number])),
            "cpu_us_median": round(statistics.median(times[number])),
        }
        for number, way in enumerate(WAYS)
    }
    naive = found[NAIVE]
    for each in found.values():
        each["instructions_ratio"] = round(each["instructions"] / naive["instructions"], 3)
        each["cpu_ratio"] = round(each["cpu_us_best"] / naive["cpu_us_best"], 3)
    return {"payload_bytes": PAYLOAD_BYTES, "bar": BAR, "ways": list(found.values())}


def _times(environment: Mapping[str, str]) -> list[list[float]]:
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.cpu import timed; timed()"],
        env={**os.environ, **environment},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    times: list[list[float]] = json.loads(done.stderr)
    return times


def table(found: dict[str, Any]) -> str:
    line = (
        "  {name:22} packed by {packed_by:2}, {together:2} a batch: {instructions:10,} instructions"
        " ({instructions_ratio:5.1%} of naive)  {cpu_us_best:5} us of CPU at best,"
        " {cpu_us_median:5} in the middle ({cpu_ratio:.1%})"
    )
    lines = [f"A step with a payload of {found['payload_bytes']:,} bytes:"]
    lines += [line.format_map(each) for each in found["ways"]]
    return "\n".join([*lines, f"  the bar for ours packed by 10: {found['bar']:.0%} of naive"])
