"""One agent whose SQS is in trouble, in a process of its own; then it is well again."""

import contextlib
import json
import logging
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.sdk.agent import Queue, State, payload_of, record_steps, recorder

STEPS: Final = 10_000
TROUBLES: Final[tuple[State, ...]] = ("slow", "down", "refusing")
SPOOLS: Final = ("with a spool", "without")

_EVENTS: Final = STEPS + 2
_PATIENCE_S: Final = 1.0
"""How long the agent waits for its flush: less than one request of the slow SQS."""


def tell(trouble: State, spool: str) -> None:
    """Print, as JSON, what became of a run's events by the time the agent was done and had flushed,
    and once SQS was well again."""
    logging.getLogger("runtally").setLevel(logging.CRITICAL)  # it says all this, too
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        queue = Queue(trouble)
        own = recorder(queue, folder if spool == SPOOLS[0] else None)
        payload = payload_of(4_096)
        before = _largest_bytes()
        began = time.perf_counter()
        with own.run("research") as run:
            record_steps(run, STEPS, payload)
        agent_s = time.perf_counter() - began
        unsent = own.flush(_PATIENCE_S)
        arrived = queue.arrived
        grown = _largest_bytes() - before
        queue.state = "well"
        later = own.close()
        told = {
            "agent_s": round(agent_s, 2),
            "grown_mb": round(grown / 1e6, 1),
            "arrived": arrived,
            "waiting": unsent.events,
            "lost": unsent.lost,
            # A request under way counts as waiting and may have arrived meanwhile.
            "untold": max(0, _EVENTS - arrived - unsent.events - unsent.lost),
            "arrived_later": queue.arrived,
            "lost_later": later.lost,
        }
    sys.stdout.write(json.dumps(told))


def _largest_bytes() -> int:
    """What the process took at its largest so far. In kilobytes on Linux, in bytes on macOS."""
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024
