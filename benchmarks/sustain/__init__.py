"""Minutes of load on the embedded AWS, from the SDK to the last total: `python -m benchmarks
sustain`.

Some runs at a time, each with a Recorder of its own, record steps as fast as they are counted:
whoever is so many steps ahead of the totals waits, so that the lag is that number by the rate, and
ten seconds at least, for which a Recorder packs. What comes out is what this machine takes end to
end, with the sender, the embedded AWS and all functions on it, and says nothing of AWS, where none
of the three shares a processor. What it can show: that lag and memory stay as they are for as long
as steps come, and that each step is counted once.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any, Final

from benchmarks.sustain.lag import lag_of_counting, lag_of_storing, spread_by_minute
from benchmarks.sustain.processes import EMBEDDED_AWS, Watch
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.core.keys import RunRef
from functions.core.model import Order, Run, Start
from local import queues, waiting
from local.emulator import Emulator
from local.progress import doing
from local.running import deployed
from local.stage import Stage
from runtally.recorder import Recorder

SECONDS: Final = 300
SECONDS_VARIABLE: Final = "RUNTALLY_SUSTAIN_S"
RUNS: Final = 8
AHEAD: Final = 1_500
"""Steps that may be recorded and not counted yet, of all runs together."""
COST: Final = Decimal("0.0125")
_TENANT: Final = "sustain"
_PAYLOAD: Final = {"messages": [{"role": "user", "content": "Read, then change one thing. " * 34}]}
_LOOK_S: Final = 0.5
_PAUSE_S: Final = 0.005
"""Between two steps of a run: of all runs, far more a second than are counted here."""
_SUMMARISED_WITHIN_S: Final = 300
_HALF_A_MINUTE_S: Final = 30


class Load:
    """Runs that record until time is up; `recorded` is how many steps each has."""

    def __init__(self, stage: Stage, seconds: float, spool: str) -> None:
        self.refs = [RunRef(_TENANT, f"run-{number}") for number in range(1, RUNS + 1)]
        self.recorded = dict.fromkeys(self.refs, 0)
        self.lost = 0
        self._stage, self._seconds, self._spool = stage, seconds, spool
        self._counted = 0
        self._over = threading.Event()

    def run(self) -> list[tuple[float, int]]:
        """Returns how many steps were counted at which second."""
        table = DynamoDBTable(self._stage.dynamodb, self._stage.table_name)
        totals = DynamoDBTotalsStore(table)
        threads = [threading.Thread(target=self._record, args=(ref,)) for ref in self.refs]
        counted: list[tuple[float, int]] = []
        began = time.monotonic()
        for thread in threads:
            thread.start()
        try:
            while (at := time.monotonic() - began) < self._seconds:
                live = [totals.read_totals(_run(ref)).totals.agents_total for ref in self.refs]
                self._counted = sum(live)
                counted.append((at, self._counted))
                time.sleep(_LOOK_S)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        return counted

    def _record(self, ref: RunRef) -> None:
        stage = self._stage
        with (
            closing(stage.cloud.client("sqs")) as sqs,
            closing(stage.cloud.client("s3")) as s3,
            Recorder(
                tenant_id=ref.tenant_id,
                queue_url=stage.event_queue_url,
                bucket=stage.bucket_name,
                sqs=sqs,
                s3=s3,
                spool_dir=self._spool,
            ) as recorder,
        ):
            with recorder.run("sustain", run_id=ref.run_id) as run:
                while not self._over.is_set():
                    self._over.wait(_PAUSE_S)
                    if sum(self.recorded.values()) - self._counted >= AHEAD:
                        continue
                    number = self.recorded[ref]
                    with run.step("think", phase=f"phase-{number % 7}", kind="model") as step:
                        step.set(input_tokens=1_200, cost_usd=COST, payload=_PAYLOAD)
                    self.recorded[ref] += 1
            self.lost += recorder.flush().lost


def _run(ref: RunRef) -> Run:
    return Run(ref, 1, Start(Order(0, "")), 0)


def measure() -> dict[str, Any]:
    seconds = float(os.environ.get(SECONDS_VARIABLE, SECONDS))
    with doing("Start the embedded AWS"):
        emulator = Emulator()
    with (
        emulator,
        closing(deployed(emulator)) as stage,
        tempfile.TemporaryDirectory() as spool,
    ):
        load = Load(stage, seconds, spool)
        with doing(f"Record for {seconds:g} s"), Watch(emulator.pid) as watch:
            began_ns = time.time_ns()
            counted = load.run()
            watch.look()
        with doing("Wait for the summaries"):
            wanted = [(ref, load.recorded[ref]) for ref in load.refs]
            results = waiting.until_summarised(stage, wanted, _SUMMARISED_WITHIN_S)
        steps = sum(load.recorded.values())
        return {
            "seconds": seconds,
            "cores": os.cpu_count(),
            "runs": RUNS,
            "steps": steps,
            "lost": load.lost,
            "steps_per_second": round(_rate(counted), 1),
            "steps_per_second_by_minute": _by_minute(counted),
            "lag_to_stored_ms": spread_by_minute(lag_of_storing(stage, load.refs), began_ns),
            "lag_to_counted_ms": spread_by_minute(lag_of_counting(stage), began_ns),
            "processes": watch.figures(),
            "dead_letters": queues.dead_letters(stage),
            "counted_exactly": all(
                result.totals.agents_total == load.recorded[ref]
                and Decimal(result.totals.cost_usd_total) == load.recorded[ref] * COST
                for ref, result in zip(load.refs, results, strict=True)
            ),
        }


def _rate(counted: Sequence[tuple[float, int]]) -> float:
    """Steps a second by the line through all that was seen: the first seconds count nothing yet."""
    return statistics.linear_regression(*zip(*counted, strict=True)).slope


def _by_minute(counted: Sequence[tuple[float, int]]) -> list[float]:
    minutes: dict[int, list[tuple[float, int]]] = {}
    for at, total in counted:
        minutes.setdefault(int(at // 60), []).append((at, total))
    whole = [seen for seen in minutes.values() if seen[-1][0] - seen[0][0] > _HALF_A_MINUTE_S]
    return [round(_rate(seen), 1) for seen in whole]


def table(found: dict[str, Any]) -> str:
    exact = "exactly" if found["counted_exactly"] else "NOT EXACTLY"
    lines = [
        "{steps:,} steps of {runs} runs in {seconds:g} s, {steps_per_second} a second; {lost} lost,"
        " {dead_letters} dead letters, counted {exact}".format(exact=exact, **found),
        f"  by the minute: {found['steps_per_second_by_minute']} steps a second",
    ]
    for what in ("stored", "counted"):
        spreads = found[f"lag_to_{what}_ms"]
        told = ", ".join(f"{one['p50']:,} / {one['p95']:,}" for one in spreads)
        lines.append(f"  from the end of a step to {what}, ms, p50 / p95 by the minute: {told}")
    busy = sum(one["cpu_percent"] for one in found["processes"])
    aws = sum(one["cpu_percent"] for one in found["processes"] if one["name"] == EMBEDDED_AWS)
    lines += [
        f"  CPU: {busy:.0f} % of a core, of {found['cores']} cores; the embedded AWS {aws:.0f} %",
        "  memory by the minute, MB; growth; CPU while recording:",
    ]
    for one in found["processes"]:
        memory = " ".join(f"{each:5.0f}" for each in one["mb_by_minute"])
        lines.append(
            f"    {one['name']:28} {memory:29}   {one['mb_per_minute']:+6.2f} MB a minute,"
            f" {one['cpu_percent']:3.0f} % of a core"
        )
    return "\n".join(lines)
