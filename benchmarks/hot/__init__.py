"""What a hot run does to the table: `python -m benchmarks hot`.

The real ingest, summarize and recount, in virtual time, over a table each of whose partitions takes
1,000 write units a second, and not one more. Throttled requests are tried again as the functions'
clients do; messages that fail come again, or become dead letters, as the deployed queue says;
Lambda's pollers grow as AWS describes. Steps are cut into messages by the SDK's own rules.

Assumed are the latencies and the CPU time of a request. Nothing is counted on that AWS grants for
some time and does not promise: burst capacity. Each scenario lasts a minute, or as long as 60,000
steps take, so that all of them together take minutes: more of a load that is too much comes out
worse, not better. It cannot show how DynamoDB moves keys to partitions of their own; where a
scenario says "new table", keys share four partitions all the time, which is the worst of it.
"""

import contextlib
import gc
import io
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from benchmarks.hot.delivery import MOST_AT_ONCE, Redelivery
from benchmarks.hot.figures import of_delivery, of_partitions, of_steps
from benchmarks.hot.load import Load
from benchmarks.hot.partitions import NEW_TABLE_PARTITIONS, WRITES_A_SECOND, Partitions
from benchmarks.hot.stage import Deployed, HotStage
from functions.core.keys import RunRef
from tests.runner.streams import StreamMapping

MOST_STEPS: Final = 60_000
MOST_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Scenario:
    """`steps_a_second` is that of each run. `plain`: with neither the stage's limit of batches at
    once nor the functions' own patience, as AWS and botocore have it."""

    steps_a_second: float
    buckets: int = 1
    runs: int = 1
    new_table: bool = False
    plain: bool = False
    large: bool = False

    @property
    def name(self) -> str:
        runs = "a run" if self.runs == 1 else f"{self.runs} runs of a tenant, each"
        told = f"{runs} at {self.steps_a_second:,g}/s"
        told += f", {self.buckets} bucket{'s' * (self.buckets > 1)}"
        return (
            told
            + ", new table" * self.new_table
            + ", large items" * self.large
            + ", plain" * self.plain
        )

    @property
    def load(self) -> Load:
        rate = self.steps_a_second * self.runs
        seconds = min(MOST_SECONDS, MOST_STEPS / rate)
        return Load(self.runs, self.steps_a_second, seconds, self.buckets, self.large)


SCENARIOS: Final = (
    *(Scenario(rate, buckets) for rate in (30, 300, 800, 1_000) for buckets in (1, 8)),
    Scenario(6_000, 8),
    Scenario(6_000, 8, new_table=True),
    Scenario(10_000, 8),
    Scenario(6_000),
    Scenario(10_000),
    Scenario(10_000, large=True),
    Scenario(5, runs=200, new_table=True),
    Scenario(6_000, 8, new_table=True, plain=True),
    Scenario(10_000, plain=True),
)
BARS: Final = (Scenario(800), Scenario(6_000, 8))
"""In which the hottest key must stay under what a partition takes."""


@cache
def deployed() -> Deployed:
    """As the CDK app has it."""
    from cdk import pipeline_stack, queue, settings  # noqa: PLC0415 - starts a Node process

    def redelivery(timeout: Any) -> Redelivery:
        visibility_s = queue.outlasting(timeout).to_seconds()
        return Redelivery(visibility_s, queue.DELIVERIES, timeout.to_seconds())

    events = redelivery(pipeline_stack.INGEST_TIMEOUT)
    recounts = redelivery(pipeline_stack.RECOUNT_TIMEOUT)
    delay_s = pipeline_stack.RECOUNT_DELAY.to_seconds()
    return Deployed(
        events=replace(events, most_at_once=settings.STAGES["prod"].ingest_at_once),
        recounts=replace(recounts, delay_s=delay_s),
        # Its filter was applied before; the rest is as in deliver_stream.
        stream=StreamMapping(1_000, 10, bisect=True, reports_failures=True, patterns=({},)),
        stream_timeout_s=pipeline_stack.SUMMARIZE_TIMEOUT.to_seconds(),
    )


def run(scenario: Scenario, as_deployed: Deployed) -> dict[str, Any]:
    """What came of one scenario."""
    load = scenario.load
    random.seed(1)  # the functions' own jitter
    if scenario.plain:
        events = replace(as_deployed.events, most_at_once=MOST_AT_ONCE)
        as_deployed = replace(as_deployed, events=events, patient=False)
    partitions = Partitions(partition_of=_of_new_table if scenario.new_table else lambda key: key)
    stage = HotStage(as_deployed, partitions)
    oldest_s: list[float] = []
    for number, ref in enumerate(load.refs):
        stage.time.spawn(_sender(stage, load, number, ref, oldest_s))
    with contextlib.redirect_stdout(io.StringIO()), _without_collections():
        stage.time.run()
    return {
        "name": scenario.name,
        "seconds": load.seconds,
        "steps": load.steps_of_run * load.runs,
        **of_partitions(partitions, load.seconds),
        **of_delivery(stage, max(oldest_s), load.seconds),
        **of_steps(stage, load),
    }


def _sender(
    stage: HotStage, load: Load, number: int, ref: RunRef, oldest_s: list[float]
) -> Callable[[], None]:
    def send() -> None:
        for message in load.messages_of(number, ref):
            stage.time.sleep(max(0.0, message.at - stage.time.now))
            stage.events.send(message.body)
        oldest_s.append(stage.events.oldest_s)

    return send


def _of_new_table(key: str) -> int:
    return zlib.crc32(key.encode()) % NEW_TABLE_PARTITIONS


@contextlib.contextmanager
def _without_collections() -> Any:
    """The table is millions of small objects, which the collector would visit again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


def measure() -> dict[str, Any]:
    found = [run(scenario, deployed()) for scenario in SCENARIOS]
    by_name = {one["name"]: one for one in found}
    bars = [
        {
            "bar": f"hottest key under {WRITES_A_SECOND:,} write units a second: {bar.name}",
            "figure": by_name[bar.name]["hottest_write_units_a_second"],
            "holds": by_name[bar.name]["hottest_write_units_a_second"] < WRITES_A_SECOND,
        }
        for bar in BARS
    ]
    lost = sum(one["lost"] for one in found)
    bars.append({"bar": "no step lost, whatever the load", "figure": lost, "holds": not lost})
    return {"scenarios": found, "bars": bars}


def table(found: dict[str, Any]) -> str:
    width = max(len(one["name"]) for one in found["scenarios"])
    columns = "hottest key WU/s   throttled  again (most)  dead   oldest  drained  counted   lost"
    lines = [f"{'':{width}}  {columns}  TOTALS"]
    line = (
        "{name:{width}}  {hottest_write_units_a_second:6,} most, {on_average:5,}"
        " {throttled_writes:9,} {redeliveries:7,} ({most_receives})  {dead_letters:6,}"
        " {oldest_message_at_end_s:5.1f} s {drained_after_s:6,.0f} s {counted_after_s:6,.0f} s"
        " {lost:5,}  {exact}"
    )
    for one in found["scenarios"]:
        exact = "exact" if one["totals_exact"] else "WRONG"
        average = one["hottest_write_units_a_second_on_average"]
        lines.append(line.format(width=width, exact=exact, on_average=average, **one))
    lines += [
        f"{'holds' if bar['holds'] else 'MISSED'}: {bar['bar']}: {bar['figure']:,}"
        for bar in found["bars"]
    ]
    return "\n".join(lines)
