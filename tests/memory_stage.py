"""The deployed pipeline in one process: the real handlers, wired as in Lambda, over the fakes."""

import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from functions.adapters.attributes import from_attributes
from functions.adapters.settings import (
    ApiSettings,
    DeadJobsSettings,
    EraseSettings,
    IngestSettings,
    RecountSettings,
    SummarizeSettings,
    SweepSettings,
)
from functions.api import dead_jobs_handler, shapes
from functions.api.handler import api_over
from functions.core import keys
from functions.core.items import Item
from functions.core.keys import InvocationRef, Pointer, RunRef
from functions.erase import handler as erase_handler
from functions.ingest import handler as ingest_handler
from functions.summarize import handler as summarize_handler
from functions.summarize import recount_handler
from functions.sweep import handler as sweep_handler
from runtally import wire
from tests.fakes.calls import Calls
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.fakes.eventbridge import MemoryEvents
from tests.fakes.s3 import MemoryS3
from tests.fakes.sqs import MemorySQS
from tests.memory_lake import MemoryLake

DEAD_LETTERS = "memory://dead-letters"
RECOUNTS = "memory://recounts"
EVENTS = "memory://events"
ERASURES = "memory://erasures"
JOBS = {"research": "memory://jobs-of-research", "translate": "memory://jobs-of-translate"}
QUIET_S = 600
SWEPT_EVERY_S = 300
NOW_NS = 1_796_000_000_000_000_000
"""The stage's clock: some time in November 2026."""


class MemoryStage:
    """Everything between the event queue and the table, without any AWS."""

    def __init__(
        self,
        *,
        retention_days: int = 365,
        page_bytes: int = 1024 * 1024,
        redact: bool = False,
        lake: bool = False,
    ) -> None:
        self.calls = Calls()
        self.dynamodb = MemoryDynamoDB(self.calls, page_bytes)
        self.s3 = MemoryS3(self.calls)
        self.failed_batches = MemoryS3(self.calls)
        self.sqs = MemorySQS(self.calls)
        self.events = MemoryEvents(self.calls)
        self.now_ns = NOW_NS
        self.lake = MemoryLake(self.calls, self.dynamodb, lambda: self.now_ns) if lake else None
        self.streamed = 0
        self.ingest_parts = ingest_handler.ingest_over(
            self.dynamodb,
            self.s3,
            self.sqs,
            IngestSettings("t", "b", DEAD_LETTERS, retention_days, ERASURES),
            lambda: self.now_ns,
        )
        self.summarize_parts = summarize_handler.summarize_over(
            self.dynamodb, self.sqs, lambda: self.events, SummarizeSettings("t", RECOUNTS)
        )
        self.recount_parts = recount_handler.recount_over(
            self.dynamodb, self.failed_batches, lambda: self.events, RecountSettings("t", "f")
        )
        self.sweep_parts = sweep_handler.sweep_over(
            self.dynamodb,
            self.sqs,
            lambda: self.events,
            SweepSettings("t", RECOUNTS, ERASURES, retention_days, SWEPT_EVERY_S),
            lambda: self.now_ns,
        )
        self.erase_parts = erase_handler.erase_over(
            self.dynamodb,
            self.s3,
            self.sqs,
            EraseSettings("t", "b", ERASURES, QUIET_S, "l" if lake else ""),
            lambda: self.now_ns,
            s3_of_lake=self.lake.s3 if self.lake else None,
        )
        self.dead_jobs_parts = dead_jobs_handler.dead_jobs_over(
            self.dynamodb, self.s3, DeadJobsSettings("t", "b"), lambda: self.now_ns
        )
        self.api = api_over(
            self.dynamodb,
            self.s3,
            self.sqs,
            ApiSettings("t", "b", EVENTS, retention_days, JOBS, ERASURES, redact),
            lambda: self.now_ns,
        )

    # -- what happens ---------------------------------------------------------------------------

    def ingest(self, *bodies: str | bytes) -> list[str]:
        """Deliver one batch of messages; the ids of those to be delivered again, `0`, `1`, …"""
        answer = ingest_handler.process(_batch_of(bodies), self.ingest_parts)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def ingest_claimed(self, run: RunRef, body: bytes) -> None:
        """Deliver a message too large for the queue: its body in the inbox, and a claim on it."""
        sha256 = hashlib.sha256(body).hexdigest()
        key = keys.inbox_prefix(run) + sha256
        self.s3.put_object(Key=key, Body=body)
        claim = wire.Claim(key, sha256, len(body))
        head = wire.Head(v=1, tenant_id=run.tenant_id, run_id=run.run_id, claim=claim)
        assert self.ingest(msgspec.json.encode(head)) == []

    def invoke(
        self, service_entry: str = "research", tenant_id: str = "acme", **wanted: object
    ) -> shapes.Invocation:
        """Ask a service entry to do something: `input`, unless given, is null."""
        body = msgspec.json.encode({"input": None} | wanted)
        return self.api.invoke(tenant_id, service_entry, body)

    def invoke_raw(self, body: bytes) -> shapes.Invocation:
        return self.api.invoke("acme", "research", body)

    def read_invocation(self, invocation_id: str, tenant_id: str = "acme") -> shapes.Invocation:
        return self.api.read_invocation(tenant_id, invocation_id)

    def dead_jobs(self, *bodies: str | bytes) -> list[str]:
        """Deliver one batch of jobs that were given up; the ids of those to be delivered again."""
        answer = dead_jobs_handler.process(_batch_of(bodies), self.dead_jobs_parts)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def summarize(self, records: Sequence[dict[str, Any]]) -> list[str]:
        """Deliver one batch of stream records; the sequence numbers to resume at."""
        if not records:
            return []
        answer = summarize_handler.process({"Records": list(records)}, self.summarize_parts)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def write_lake(self) -> None:
        """Deliver all that the lake's own mapping lets through since the last call."""
        assert self.lake
        assert self.lake.deliver(self.lake.new_stream_records()) == []

    def recount(self) -> list[str]:
        """Deliver all that stands in the recount queue; the ids of those to be delivered again."""
        messages = self.sqs.queues.get(RECOUNTS, [])
        records = [{"messageId": m.message_id, "body": m.body} for m in messages]
        answer = recount_handler.process({"Records": records}, self.recount_parts)
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        self.sqs.queues[RECOUNTS] = [m for m in messages if m.message_id in failed]
        return failed

    def sweep(self, left_ms: int = 240_000) -> dict[str, int]:
        """What a sweep says that it did, which has so much time for it."""
        self.dynamodb.settle()  # the indexes, which lag by less than the time between two sweeps
        return sweep_handler.process(lambda: left_ms, self.sweep_parts)

    def erase(self, late: Callable[[], bool] = lambda: False) -> list[str]:
        """Deliver the erasure requests that are due, one at a time; the ids of those to be
        delivered again."""
        waiting = self.sqs.queues.setdefault(ERASURES, [])
        failed: list[str] = []
        for sent in [sent for sent in waiting if sent.visible_at <= self.sqs.clock.now_ns()]:
            event = {"Records": [{"messageId": sent.message_id, "body": sent.body}]}
            if erase_handler.process(event, self.erase_parts, late)["batchItemFailures"]:
                failed.append(sent.message_id)
            else:
                waiting.remove(sent)
        return failed

    def erase_all(self) -> None:
        """Deliver erasure requests until none is left; time passes meanwhile."""
        while self.sqs.queues.get(ERASURES):
            assert self.erase() == []
            self.pass_time(60)

    def pass_time(self, seconds: int) -> None:
        self.now_ns += seconds * 10**9
        self.sqs.clock.advance(seconds)

    def new_stream_records(self) -> list[dict[str, Any]]:
        """What the event source filter lets through of all that was written since the last call."""
        fresh = self.dynamodb.stream[self.streamed :]
        self.streamed = len(self.dynamodb.stream)
        return [record for record in fresh if passes_filter(record)]

    def drain(self) -> None:
        """Deliver the rest of the stream and all recounts, without any fault."""
        self.summarize(self.new_stream_records())
        while self.sqs.queues.get(RECOUNTS):
            assert self.recount() == []
        if self.lake:
            self.write_lake()

    # -- what stands there ----------------------------------------------------------------------

    def item(self, run: RunRef, sort: str) -> Item | None:
        found = self.dynamodb.items.get((keys.run_partition(run), sort))
        return None if found is None else from_attributes(found)

    def items_of(self, run: RunRef, prefix: str = "") -> list[Item]:
        return [
            from_attributes(item)
            for (partition, sort), item in sorted(self.dynamodb.items.items())
            if sort.startswith(prefix) and _is_of(partition, run)
        ]

    def invocation_item(self, invocation_id: str, tenant_id: str = "acme") -> Item | None:
        found = self.dynamodb.items.get(
            keys.invocation_item(InvocationRef(tenant_id, invocation_id))
        )
        return None if found is None else from_attributes(found)

    def jobs(self, service_entry: str = "research") -> list[str]:
        """The bodies on the work queue of a service entry."""
        return [sent.body for sent in self.sqs.queues.get(JOBS[service_entry], [])]

    def line_behind(self, run: RunRef, pointer: str) -> bytes:
        """The stored line that an item points at; fails when the object is not there."""
        name, offset, length = Pointer.parse(pointer)
        content = self.s3.objects[keys.object_of_run(run, name)]
        return gzip.decompress(content[offset : offset + length]).rstrip(b"\n")

    def dead_letters(self) -> list[dict[str, Any]]:
        """Reason, field, refusals and body of everything that was dead-lettered."""
        return [
            {**m.attributes, "refusals": json.loads(m.attributes["refusals"]), "body": m.body}
            for m in self.sqs.queues.get(DEAD_LETTERS, [])
        ]


def _batch_of(bodies: Sequence[str | bytes]) -> dict[str, Any]:
    return {
        "Records": [
            {"messageId": str(n), "body": body if isinstance(body, str) else body.decode()}
            for n, body in enumerate(bodies)
        ]
    }


def _is_of(partition: str, run: RunRef) -> bool:
    return f"{partition}#".startswith(f"{keys.run_partition(run)}#")


def passes_filter(record: dict[str, Any]) -> bool:
    """The event source's filter in plain words; tests/infra holds the template's to the same."""
    sort = record["dynamodb"]["Keys"]["SK"]["S"]
    if sort.startswith(keys.STEP_PREFIX):
        return bool(record["eventName"] == "INSERT")
    status = record["dynamodb"].get("NewImage", {}).get("status", {}).get("S")
    return sort == keys.RUN and status in {"succeeded", "failed", "cancelled"}
