"""What `runtally.coordination` costs beside bare calls of its client: `python -m benchmarks
coordination`.

On an embedded Valkey of this machine, over loopback: a network adds its way there and back to each
request, ours and bare alike. One client in this process; then eight at once, each in a process of
its own, because threads of one process would wait for Python's lock and not for the server. All
share one run, as its workers do; whatever is timed takes turns with what it is compared to.

Costs a call are counted by the server: bytes on the wire, commands that the script calls, its CPU.
ECPUs follow from them by the rule that AWS's own estimator has: see `ecpus`.
"""

import statistics
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.aws_prices import ELASTICACHE_ECPU, MILLION
from benchmarks.coordination import clients, counting
from benchmarks.coordination.clients import Timed
from benchmarks.missing import NotHere
from local.valkey_server import NoServer, embedded

ECPU_US: Final = 3
"""How long a vCPU works for one ECPU, as scripts/serverless_estimator.py of github.com/aws/
agent-toolkit-for-aws assumes after an example of AWS: no formula is published, nor which vCPU."""
MANY: Final = 8


def measure() -> dict[str, Any]:
    try:
        with embedded() as url:
            alone, together = clients.timed(url, 1), clients.timed(url, MANY)
            counted = counting.counted(url)
    except NoServer as lack:
        raise NotHere(f"no Valkey server: {lack}") from None
    return {
        "clients": {"1": _compared(alone), str(MANY): _compared(together)},
        "counted": [
            {**each, "ecpus": ecpus(each), "usd_per_million": _usd(ecpus(each))} for each in counted
        ],
    }


def ecpus(counted: dict[str, Any]) -> float:
    """One a request at least, one for each KB that travels, and for each 3 us of the server's CPU:
    the largest of the three, since AWS bills the larger dimension."""
    by_time: float = counted["server_us"] / ECPU_US
    by_bytes: float = (counted["bytes_in"] + counted["bytes_out"]) / 1_024
    return round(max(float(counted["requests"]), by_time, by_bytes), 1)


def _usd(units: float) -> float:
    return round(units * float(ELASTICACHE_ECPU) * MILLION, 4)


def _compared(timed: Sequence[tuple[Timed, Timed]]) -> list[dict[str, Any]]:
    return [
        {
            **_figures(ours),
            "bare": _figures(bare),
            # Round by round: what disturbs the machine disturbs both.
            "times_bare": round(
                statistics.median(
                    theirs / own for own, theirs in zip(ours.rates, bare.rates, strict=True)
                ),
                2,
            ),
        }
        for ours, bare in timed
    ]


def _figures(timed: Timed) -> dict[str, Any]:
    return {
        "name": timed.name,
        "per_s": round(statistics.median(timed.rates)),
        "p50_us": round(timed.percentile(50)),
        "p99_us": round(timed.percentile(99)),
    }


def table(found: dict[str, Any]) -> str:
    line = (
        "  {name:24} {per_s:7,}/s, p50 {p50_us:5,} us, p99 {p99_us:6,} us; {times_bare:5} times"
        " {bare[name]}: {bare[per_s]:7,}/s, {bare[p50_us]:5,} us, {bare[p99_us]:6,} us"
    )
    lines = []
    for clients_at_once, compared in found["clients"].items():
        lines += [f"Clients at once: {clients_at_once}"]
        lines += [line.format_map(each) for each in compared]
    a_call = (
        "  {name:24} {requests} requests, {bytes_in:5} bytes there, {bytes_out:4} back, {calls:3}"
        " commands within, {server_us:5} us of the server; {ecpus} ECPUs, ${usd_per_million}"
        " a million"
    )
    return "\n".join([*lines, "A call:", *(a_call.format_map(each) for each in found["counted"])])
