"""The pipeline between a worker's SendMessageBatch and the summary, with every request counted.

The real handlers over the fakes; around them what Lambda does: a batch is received as soon as
something is sent, and the stream is read a second after the first of its records.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import batched
from typing import Any, Final

from benchmarks import aws_prices
from benchmarks.cost.lambda_time import Stopwatch
from benchmarks.cost.usage import Usage
from benchmarks.cost.virtual_time import EVENTS_URL, VirtualTime
from functions.core import keys
from tests.fakes.dynamodb import item_size
from tests.fakes.sqs import MemorySQS
from tests.memory_stage import RECOUNTS, MemoryStage

WINDOW_S: Final = 1
RECORDS_A_BATCH: Final = 1_000
"""As cdk/event_sources.py sets both."""
RECOUNT_DELAY_S: Final = 5
MESSAGES_A_BATCH: Final = 10
"""As cdk/pipeline_stack.py and cdk/event_sources.py set them."""

ITEM_OVERHEAD: Final = 100
"""Bytes that DynamoDB adds to an item that it stores:
https://aws.amazon.com/dynamodb/pricing/on-demand/"""


class EventQueue(MemorySQS):
    """`requests` are those that SQS bills: sends, receives and deletes, by 64 KB."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0
        self.bodies: list[str] = []
        """All that was ever sent."""

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        bodies = [entry["MessageBody"] for entry in request["Entries"]]
        self.requests += billed(bodies)
        self.bodies += bodies
        return super().send_message_batch(**request)

    def take(self, most: int) -> list[str]:
        """Receive a batch and, later, delete it."""
        queue = self.queues.get(EVENTS_URL, [])
        taken, queue[:] = [sent.body for sent in queue[:most]], queue[most:]
        if taken:
            self.requests += billed(taken) + 1
        return taken


def billed(bodies: Sequence[str]) -> int:
    """Requests that SQS bills for bodies that travel together."""
    return max(
        1, math.ceil(sum(len(body.encode()) for body in bodies) / aws_prices.SQS_REQUEST_BYTES)
    )


class CountedStage:
    def __init__(self, time: VirtualTime) -> None:
        self.queue = EventQueue()
        self.stage = MemoryStage()
        self._time = time
        self._stopwatch = Stopwatch()
        self._invocations = 0
        self._reading_stream = False
        self._recounts = 0

    def receive(self) -> None:
        """Let ingest have all that stands in the queue."""
        while bodies := self.queue.take(MESSAGES_A_BATCH):
            failed = self._invoke("ingest", partial(self.stage.ingest, *bodies), len(bodies))
            if failed:
                raise AssertionError(f"ingest returned {failed}")
        if not self._reading_stream and self.stage.streamed < len(self.stage.dynamodb.stream):
            self._reading_stream = True
            self._time.after(WINDOW_S, self._read_stream)

    def _read_stream(self) -> None:
        self._reading_stream = False
        for batch in batched(self.stage.new_stream_records(), RECORDS_A_BATCH, strict=False):
            self._invoke("summarize", partial(self.stage.summarize, batch))
        if self.stage.sqs.queues.get(RECOUNTS):
            self._time.after(RECOUNT_DELAY_S, self._recount)

    def _recount(self) -> None:
        if self.stage.sqs.queues.get(RECOUNTS):
            self._recounts += 1
            self._invoke("recount", self.stage.recount)

    def _invoke(self, name: str, invoke: Callable[[], list[str]], messages: int = 1) -> list[str]:
        self.stage.now_ns = self._time.now_ns
        self._invocations += 1
        with self._stopwatch.invocation(name, self.stage.calls.made, messages):
            return invoke()

    def usage(self) -> Usage:
        """Of all so far. Fails when a step is not in its run's summary."""
        stage, made = self.stage, self.stage.calls.made
        usage = Usage(steps=_summarised(stage))
        usage.counted = {
            "sqs_requests": self._sqs_requests(),
            "s3_puts": made.count("s3.put_object"),
            "s3_gets": made.count("s3.get_object"),
            "write_units": stage.dynamodb.write_units,
            "read_units": stage.dynamodb.read_units,
            "lambda_requests": self._invocations,
            "events": len(stage.events.taken),
        }
        usage.gb_seconds = self._stopwatch.gb_seconds
        usage.seen = {
            "messages": len(self.queue.bodies),
            "steps_a_message": round(usage.steps / len(self.queue.bodies), 2),
            "hours": round(self._time.passed_s / 3_600, 2),
            "object_bytes_a_step": sum(map(len, stage.s3.objects.values())) // usage.steps,
            "table_bytes_a_step": _table_bytes(stage) // usage.steps,
        }
        return usage

    def _sqs_requests(self) -> int:
        """Those of the functions are recounts asked for: each sent, received and deleted."""
        recounts_sent = self.stage.calls.made.count("sqs.send_message")
        return self.queue.requests + recounts_sent + 2 * self._recounts


def _table_bytes(stage: MemoryStage) -> int:
    return sum(item_size(item) + ITEM_OVERHEAD for item in stage.dynamodb.items.values())


def _summarised(stage: MemoryStage) -> int:
    """Steps that are stored, all of them in the summaries of their runs."""
    sorts = [sort for _, sort in stage.dynamodb.items]
    steps = sum(sort.startswith(keys.STEP_PREFIX) for sort in sorts)
    summaries = [
        int(item["agents_total"]["N"])
        for (_, sort), item in stage.dynamodb.items.items()
        if sort == keys.SUMMARY
    ]
    if len(summaries) != sorts.count(keys.RUN) or sum(summaries) != steps:
        raise AssertionError(f"summaries {summaries} of {steps} steps")
    return steps
