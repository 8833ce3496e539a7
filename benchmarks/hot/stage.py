"""The deployed pipeline in virtual time: the real handlers, each environment with its clients."""

import random
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.hot.delivery import Handler, PolledQueue, Redelivery, Shards
from benchmarks.hot.partitions import Cpu, HotClient, HotTable, Partitions, Retries
from benchmarks.hot.virtual_time import Pool, VirtualTime
from functions.adapters import clients
from functions.adapters.clients import Patience
from functions.adapters.settings import IngestSettings, RecountSettings, SummarizeSettings
from functions.ingest import handler as ingest_handler
from functions.summarize import handler as summarize_handler
from functions.summarize import recount_handler
from tests.fakes.eventbridge import MemoryEvents
from tests.fakes.s3 import MemoryS3
from tests.memory_stage import DEAD_LETTERS, ERASURES, NOW_NS, RECOUNTS, passes_filter
from tests.runner.streams import StreamMapping

S3_PUT_S: Final = 0.03
S3_GET_S: Final = 0.02
"""Assumed, as all latencies."""
INGEST_CPU_S: Final = 0.001
SUMMARIZE_CPU_S: Final = 0.002
"""Assumed of a request: half a millisecond of a whole vCPU, of which 1,769 MB have one:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""
RECORD_CPU_S: Final = 0.0002
"""Of a stream record, likewise."""
_RETENTION_DAYS: Final = 365


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the stack says of how events are delivered, and whether clients go on asking where
    botocore alone would give up."""

    events: Redelivery
    recounts: Redelivery
    stream: StreamMapping
    stream_timeout_s: float
    patient: bool = True


class SlowS3(MemoryS3):
    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def put_object(self, **request: Any) -> dict[str, Any]:
        self._time.sleep(S3_PUT_S)
        return super().put_object(**request)

    def get_object(self, **request: Any) -> dict[str, Any]:
        self._time.sleep(S3_GET_S)
        return super().get_object(**request)


class HotStage:
    """From the event queue to the summary; `refused` holds what ingest put to the dead letters."""

    def __init__(self, deployed: Deployed, partitions: Partitions, seed: int = 1) -> None:
        self.time = VirtualTime()
        self.partitions = partitions
        self.table = HotTable(self._on_record)
        self.s3 = SlowS3(self.time)
        self.events = PolledQueue(self.time, deployed.events, self._ingest)
        self.recounts = PolledQueue(self.time, deployed.recounts, self._recount)
        self.shards = Shards(self.time, deployed.stream, self._summarize, passes_filter)
        self.refused: list[str] = []
        self._bus = MemoryEvents()
        self._deployed = deployed
        self._chance = random.Random(seed)  # noqa: S311 - jitter

    def _on_record(self, key: str, record: dict[str, Any]) -> None:
        self.shards.add(self.partitions.partition_of(key), record)

    def send_message(self, **request: Any) -> dict[str, Any]:
        """The functions' own SQS."""
        if request["QueueUrl"] == RECOUNTS:
            self.recounts.send(request["MessageBody"])
        else:
            self.refused.append(request["MessageBody"])
        return {}

    def now_ns(self) -> int:
        return NOW_NS + int(self.time.now * 1e9)

    def _patience(self) -> Patience:
        return Patience(now=lambda: self.time.now)

    def _client(self, cpu_s: float, patience: Patience) -> HotClient:
        cpu = Cpu(self.time, cpu_s)
        retries = Retries(self._chance, patience if self._deployed.patient else None)
        return HotClient(self.time, self.table, self.partitions, cpu, retries)

    def _ingest(self) -> Handler:
        settings = IngestSettings("t", "b", DEAD_LETTERS, _RETENTION_DAYS, ERASURES)
        patience = self._patience()
        made = (self._client(INGEST_CPU_S, patience), self.s3, self)
        parts = ingest_handler.at_once(
            ingest_handler.ingest_over(*made, settings, self.now_ns),
            steps=Pool(self.time, clients.STEPS_AT_ONCE).map,
            messages=Pool(self.time, clients.MESSAGES_AT_ONCE).map,
        )
        parts.telemetry.logger.setLevel("CRITICAL")

        def ingest(event: dict[str, Any]) -> dict[str, Any]:
            patience.begin(int(self._deployed.events.timeout_s * 1_000))
            return ingest_handler.process(event, parts)

        return ingest

    def _summarize(self) -> Handler:
        patience = self._patience()
        parts = summarize_handler.summarize_over(
            self._client(SUMMARIZE_CPU_S, patience),
            self,
            self._events,
            SummarizeSettings("t", RECOUNTS),
        )
        parts.telemetry.logger.setLevel("CRITICAL")

        def summarize(event: dict[str, Any]) -> dict[str, Any]:
            patience.begin(int(self._deployed.stream_timeout_s * 1_000))
            self.time.sleep(len(event["Records"]) * RECORD_CPU_S)
            return summarize_handler.process(event, parts)

        return summarize

    def _recount(self) -> Handler:
        patience = self._patience()
        made = (self._client(SUMMARIZE_CPU_S, patience), MemoryS3(), self._events)
        parts = recount_handler.recount_over(*made, RecountSettings("t", "f"))
        parts.telemetry.logger.setLevel("CRITICAL")

        def recount(event: dict[str, Any]) -> dict[str, Any]:
            patience.begin(int(self._deployed.recounts.timeout_s * 1_000))
            return recount_handler.process(event, parts)

        return recount

    def _events(self) -> Any:
        return self._bus
