"""What a million steps cost, by requests, write units and Lambda's time; beside it other designs.

The real SDK cuts messages, at its defaults and in virtual time; the real handlers record them over
fakes of AWS that count. Calls take as long as those of public traces (benchmarks/cost/calls.py)
and carry 4 KB each. Requests and units depend on no machine. Lambda's time does: CPU is measured,
waiting for AWS is a model (benchmarks/cost/lambda_time.py), so that it is told apart and bars are
about what is counted. Left out: cold starts, reading back, storage (but see the monthly bill),
retries.
"""

from typing import Any, Final

from benchmarks.cost import runs
from benchmarks.cost.bars import BY_10, BY_25, DEFAULTS, SHORT, SLOW, bars
from benchmarks.cost.calls import BRISK, RECORDED
from benchmarks.cost.monthly import STEPS_PER_SECOND, monthly
from benchmarks.cost.peers import DESIGNS, LIBRARIES, Peer, usage_of
from benchmarks.cost.tables import table
from benchmarks.cost.usage import Usage
from benchmarks.missing import NotHere
from runtally import wire

__all__ = ["measure", "table"]

CALLS: Final = 1_500
AT_ONCE: Final = 8
SLOW_S: Final = 45 * 60
FAN_OUTS: Final = (1, 2, 4, 8, 16, 32)
AFTER_S: Final = (1, 5, 10, 15, 30, 60)


def measure() -> dict[str, Any]:
    events = runs.events_of(CALLS, AT_ONCE)
    ours = _ours(events)
    steps = [event for event in events if isinstance(event, wire.Step)]
    others = {name: _of_peer(peer, steps) for name, peer in {**DESIGNS, **LIBRARIES}.items()}
    figures = {name: usage.figures() for name, usage in ours.items()}
    return {
        "runs": figures,
        "by_fan_out": {n: runs.fan_out(CALLS, n).figures() for n in FAN_OUTS},
        "by_after_s": {seconds: _with_after(seconds) for seconds in AFTER_S},
        "others": others,
        "bars": bars(figures, others),
        "monthly": {n: monthly(ours[DEFAULTS], n) for n in STEPS_PER_SECOND},
    }


def _ours(events: list[wire.RunEvent]) -> dict[str, Usage]:
    return {
        DEFAULTS: runs.fan_out(CALLS, AT_ONCE),
        "… with brisk models": runs.fan_out(CALLS, AT_ONCE, BRISK),
        BY_10: runs.packed(events, 10),
        BY_25: runs.packed(events, 25),
        SHORT: runs.packed(runs.events_of(60, AT_ONCE), 5),
        SLOW: runs.slow_run(SLOW_S),
        "mixed hour, as recorded": runs.mixed_hour(None),
        "mixed hour, brisk models": runs.mixed_hour(BRISK),
        "mixed hour, calls as in traces": runs.mixed_hour(RECORDED),
    }


def _with_after(seconds: int) -> dict[str, Any]:
    """What the Recorder's `send_after_s` changes."""
    return {
        f"{AT_ONCE} at once": runs.fan_out(CALLS, AT_ONCE, send_after_s=seconds).figures(),
        "1 at once": runs.fan_out(CALLS, 1, send_after_s=seconds).figures(),
        "a step a second": runs.slow_run(SLOW_S, seconds).figures(),
    }


def _of_peer(peer: Peer, steps: list[wire.Step]) -> dict[str, Any]:
    try:
        return usage_of(peer, steps).figures()
    except NotHere as lack:
        return {"not_here": str(lack)}
