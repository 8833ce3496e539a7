"""What recording adds to an agent, and what it loses: `python -m benchmarks sdk`.

CPU of the agent's own thread for one whole step, from `run.step` to the end of its `with`, while
the recorder's thread seals and sends over a client of SQS that answers at once: thread time, so
that the other thread is not in it. Beside it what writing the payload out takes, which nobody who
keeps it can save.

And the same recorder in trouble, each time in a process of its own: SQS that takes two seconds a
request, that answers none, that refuses all for good; with a spool and without. An event must
arrive, or be told of by the flush: as waiting while it may still arrive, as lost when it may not.
Memory is what the process grows by at its largest. The client stands for SQS: no network is in it.
"""

import json
import statistics
import subprocess
import sys
import time
from typing import Any, Final

from benchmarks.sdk.agent import Queue, payload_of, record_steps, recorder
from benchmarks.sdk.trouble import SPOOLS, STEPS, TROUBLES
from local.paths import ROOT
from runtally import payloads

BAR_US: Final = 100
"""Of the agent's CPU a step with a payload of 4 KB."""

_PAYLOAD_BYTES: Final = (0, 4_096, 65_536)
_ROUNDS: Final = 20
_STEPS_A_ROUND: Final = 200


def measure() -> dict[str, Any]:
    return {"bar_us": BAR_US, "steps": _overhead(), "trouble": _troubles(), "recorded": STEPS}


def _overhead() -> list[dict[str, Any]]:
    """In rounds that take turns; the first makes the recorder's thread."""
    taken: dict[int, list[float]] = {size: [] for size in _PAYLOAD_BYTES}
    writing: dict[int, list[float]] = {size: [] for size in _PAYLOAD_BYTES}
    with recorder(Queue()) as own, own.run("research") as run:
        for turn in range(_ROUNDS + 1):
            for size in _PAYLOAD_BYTES:
                payload = payload_of(size)
                began = time.thread_time_ns()
                record_steps(run, _STEPS_A_ROUND, payload)
                recorded = time.thread_time_ns()
                for _ in range(_STEPS_A_ROUND if size else 0):
                    payloads.encode(payload)
                written = time.thread_time_ns()
                own.flush()
                if turn:
                    taken[size].append((recorded - began) / 1e3 / _STEPS_A_ROUND)
                    writing[size].append((written - recorded) / 1e3 / _STEPS_A_ROUND)
    return [
        {
            "payload_bytes": size,
            "us_best": round(min(taken[size]), 1),
            "us_median": round(statistics.median(taken[size]), 1),
            "writing_us_best": round(min(writing[size]), 1),
        }
        for size in _PAYLOAD_BYTES
    ]


def _troubles() -> list[dict[str, Any]]:
    return [_trouble(trouble, spool) for trouble in TROUBLES for spool in SPOOLS]


def _trouble(trouble: str, spool: str) -> dict[str, Any]:
    program = f"from benchmarks.sdk.trouble import tell; tell({trouble!r}, {spool!r})"
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return {"trouble": trouble, "spool": spool, **told}


def table(found: dict[str, Any]) -> str:
    a_step = (
        "  payload of {payload_bytes:6,} bytes: {us_best:6} us of the agent's CPU at best,"
        " {us_median:6} in the middle; writing it out alone {writing_us_best}"
    )
    in_trouble = (
        "  SQS {trouble:8} {spool:13} {agent_s:5} s for the agent, {grown_mb:5} MB more;"
        " {arrived:6,} had arrived, {waiting:6,} told as waiting, {lost:6,} as lost;"
        " {untold} untold; in the end {arrived_later:6,} had arrived"
    )
    lines = ["A step:", *(a_step.format_map(each) for each in found["steps"])]
    lines += [f"  the bar with 4 KB: {found['bar_us']} us"]
    lines += [f"{found['recorded']:,} steps of 4 KB, and the start and end of their run:"]
    lines += [in_trouble.format_map(each) for each in found["trouble"]]
    return "\n".join(lines)
