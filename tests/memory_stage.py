"""The deployed pipeline in one process: the real handlers, wired as in Lambda, over the fakes."""

import gzip
import json
from collections.abc import Sequence
from typing import Any, cast

from functions.adapters.dynamodb import DynamoDBTable, from_attributes
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.failed_batches import S3FailedBatches
from functions.adapters.s3 import S3ObjectStore
from functions.adapters.sqs import SqsDeadLetters, SqsRecountQueue
from functions.adapters.telemetry import Telemetry
from functions.core import keys
from functions.core.items import Item
from functions.core.keys import Pointer, RunRef
from functions.ingest import handler as ingest_handler
from functions.ingest.record import RecordMessage
from functions.summarize import handler as summarize_handler
from functions.summarize import recount_handler
from functions.summarize.recount import Recount
from functions.summarize.tally import Tally
from tests.fakes.calls import Calls
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.fakes.s3 import MemoryS3
from tests.fakes.sqs import MemorySQS

DEAD_LETTERS = "memory://dead-letters"
RECOUNTS = "memory://recounts"
NOW_NS = 1_796_000_000_000_000_000
"""The stage's clock: some time in November 2026."""


class MemoryStage:
    """Everything between the event queue and the table, without any AWS."""

    def __init__(self, *, retention_days: int = 365, page_bytes: int = 1024 * 1024) -> None:
        self.calls = Calls()
        self.dynamodb = MemoryDynamoDB(self.calls, page_bytes)
        self.s3 = MemoryS3(self.calls)
        self.failed_batches = MemoryS3(self.calls)
        self.sqs = MemorySQS(self.calls)
        self.now_ns = NOW_NS
        self.streamed = 0
        table = DynamoDBTable(cast("Any", self.dynamodb), "t")
        objects = S3ObjectStore(cast("Any", self.s3), "b")
        totals = DynamoDBTotalsStore(table)
        recount = Recount(totals)
        self.ingest_parts = ingest_handler.Ingest(
            RecordMessage(
                DynamoDBRunStore(table),
                objects,
                SqsDeadLetters(cast("Any", self.sqs), DEAD_LETTERS, objects),
                lambda: self.now_ns,
                retention_days,
            ),
            table,
            Telemetry("ingest"),
        )
        self.summarize_parts = summarize_handler.Summarize(
            Tally(totals, SqsRecountQueue(cast("Any", self.sqs), RECOUNTS), recount),
            table,
            Telemetry("summarize"),
        )
        self.recount_parts = recount_handler.RecountParts(
            recount,
            S3FailedBatches(cast("Any", self.failed_batches), "f"),
            table,
            Telemetry("recount"),
        )

    # -- what happens ---------------------------------------------------------------------------

    def ingest(self, *bodies: str | bytes) -> list[str]:
        """Deliver one batch of messages; the ids of those to be delivered again, `0`, `1`, …"""
        records = [
            {"messageId": str(n), "body": body if isinstance(body, str) else body.decode()}
            for n, body in enumerate(bodies)
        ]
        answer = ingest_handler.process({"Records": records}, self.ingest_parts)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def summarize(self, records: Sequence[dict[str, Any]]) -> list[str]:
        """Deliver one batch of stream records; the sequence numbers to resume at."""
        if not records:
            return []
        answer = summarize_handler.process({"Records": list(records)}, self.summarize_parts)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def recount(self) -> list[str]:
        """Deliver all that stands in the recount queue; the ids of those to be delivered again."""
        messages = self.sqs.queues.get(RECOUNTS, [])
        records = [{"messageId": m.message_id, "body": m.body} for m in messages]
        answer = recount_handler.process({"Records": records}, self.recount_parts)
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        self.sqs.queues[RECOUNTS] = [m for m in messages if m.message_id in failed]
        return failed

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

    # -- what stands there ----------------------------------------------------------------------

    def item(self, run: RunRef, sort: str) -> Item | None:
        found = self.dynamodb.items.get((keys.run_partition(run), sort))
        return None if found is None else from_attributes(found)

    def items_of(self, run: RunRef, prefix: str = "") -> list[Item]:
        return [
            from_attributes(item)
            for (partition, sort), item in sorted(self.dynamodb.items.items())
            if keys.parse_run_partition(partition)[0] == run and sort.startswith(prefix)
        ]

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


def passes_filter(record: dict[str, Any]) -> bool:
    """The event source's filter in plain words; tests/infra holds the template's to the same."""
    sort = record["dynamodb"]["Keys"]["SK"]["S"]
    if sort.startswith(keys.STEP_PREFIX):
        return bool(record["eventName"] == "INSERT")
    status = record["dynamodb"].get("NewImage", {}).get("status", {}).get("S")
    return sort == keys.RUN and status in {"succeeded", "failed", "cancelled"}
