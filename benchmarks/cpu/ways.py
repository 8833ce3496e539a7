"""Three ways to store the steps of a message, each over the same stub of AWS.

ours: the function ingest as Lambda wires it. naive: the least that stores the same steps with boto3
as it comes: one put_object and one conditional put_item each, neither validated nor compressed,
counted or logged. floor: what Python needs at least for the requests of a message: signed by hand,
on one kept connection each; one PUT, and a PutItem a step or one BatchWriteItem for all.
"""

import gzip
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import boto3
from boto3.dynamodb.types import TypeSerializer

from benchmarks.cpu.signed import SignedConnection
from functions.adapters.attributes import to_attributes
from functions.core import items
from functions.core.keys import Pointer
from functions.core.model import Order, Run, Start
from functions.core.ports import Recorded
from functions.ingest import handler
from runtally import wire
from tests import build

PAYLOAD_BYTES: Final = 4_096
ENVIRONMENT: Final = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjEXAMPLE" * 16,
    "POWERTOOLS_METRICS_DISABLED": "false",
    "RUNTALLY_TABLE": "t",
    "RUNTALLY_BUCKET": "b",
    "RUNTALLY_DEAD_LETTER_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/d",
    "RUNTALLY_ERASURE_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/e",
    "RUNTALLY_RETENTION_DAYS": "3650",
}
"""What Lambda gives ingest, with the credentials of a role."""

_WORDS: Final = [
    "agent",
    "call",
    "model",
    "tool",
    "step",
    "the",
    "of",
    "to",
    "read",
    "write",
    "test",
    "file",
    "error",
    "line",
    "result",
    "returned",
    "value",
    "function",
    "because",
    "therefore",
    "search",
    "query",
    "answer",
    "token",
    "plan",
    "next",
    "check",
    "change",
]


class Way(NamedTuple):
    """A way of storing steps, so many a message, so many messages a batch."""

    name: str
    packed_by: int
    together: int = 1

    @property
    def steps(self) -> int:
        return self.packed_by * self.together


OURS: Final = (Way("ours", 1), Way("ours", 10), Way("ours", 25), Way("ours", 10, 10))
NAIVE: Final = Way("naive", 10)
FLOORS: Final = (Way("floor, PutItem", 10), Way("floor, BatchWriteItem", 10))
WAYS: Final = (*OURS, NAIVE, *FLOORS)


class Message(NamedTuple):
    """A body from the queue, and, for the floor, what is to be stored of it."""

    body: str
    content: bytes
    items: list[dict[str, Any]]


def message(first: int, steps: int) -> Message:
    """A message of model calls whose payload is text as agents write it."""
    made = [_step(n) for n in range(first, first + steps)]
    lines = [wire.encode_event(step) for step in made]
    members = [gzip.compress(line + b"\n", mtime=0) for line in lines]
    run = Run(build.RUN, 1, Start(Order(0, "")), 2**33)
    stored = [
        items.step_item(
            run,
            Recorded(step, wire.digest(line), Pointer(step.step_id, 0, len(member)), build.T0),
        )
        for step, line, member in zip(made, lines, members, strict=True)
    ]
    return Message(build.body(*made), b"".join(members), [to_attributes(item) for item in stored])


def batches(way: Way, steps: int) -> list[list[Message]]:
    """Enough of them for at least so many steps."""
    return [
        [message(first + n * way.packed_by, way.packed_by) for n in range(way.together)]
        for first in range(0, steps, way.steps)
    ]


def _step(n: int) -> wire.Step:
    said = random.Random(n)  # noqa: S311 - the same text in every process
    text = " ".join(said.choices(_WORDS, k=PAYLOAD_BYTES))[:PAYLOAD_BYTES]
    return build.step(
        n,
        name="chat gpt-5-mini",
        phase="act",
        agent="coder",
        model="gpt-5-mini",
        provider="openai",
        input_tokens=1_200 + n,
        output_tokens=n % 300,
        cost_usd=f"0.00{n % 9_999:04}",
        attributes={"temperature": 0.2},
        payload={"messages": [{"role": "user", "content": text}]},
    )


def recording(way: Way) -> Callable[[list[Message]], object]:
    """What stores a batch of messages, over clients that have no connection and no thread yet."""
    if way.name == "ours":
        handler._ingest()
        return _ours
    if way.name == "naive":
        return partial(_naive, boto3.client("s3"), boto3.client("dynamodb"))
    store = _put_by_put if way == FLOORS[0] else _in_one
    return partial(store, SignedConnection("s3"), SignedConnection("dynamodb"))


class Invocation:
    """As Lambda begins one."""

    def get_remaining_time_in_millis(self) -> int:
        return 120_000


def _ours(batch: list[Message]) -> None:
    records = [{"messageId": str(n), "body": one.body} for n, one in enumerate(batch)]
    if handler.handle({"Records": records}, Invocation())["batchItemFailures"]:
        raise AssertionError("the stub refused something")


def _naive(s3: Any, dynamodb: Any, batch: list[Message]) -> None:
    serialize = TypeSerializer().serialize
    for one in batch:
        for event in json.loads(one.body)["events"]:
            key = f"agent-runs/acme/run-1/{event['step_id']}.json"
            s3.put_object(Bucket="b", Key=key, Body=json.dumps(event))
            del event["payload"]
            item = {"PK": "PIPELINERUN#acme#run-1", "SK": f"AGENT#{event['step_id']}", **event}
            item["attributes"] = json.dumps(item["attributes"])
            dynamodb.put_item(
                TableName="t",
                Item={name: serialize(value) for name, value in item.items()},
                ConditionExpression="attribute_not_exists(PK)",
            )


def _put_by_put(s3: SignedConnection, dynamodb: SignedConnection, batch: list[Message]) -> None:
    for one in batch:
        s3.put("/b/agent-runs/acme/run-1/1-0a1b2c3d.json.gz", one.content)
        for item in one.items:
            dynamodb.ask("PutItem", {"TableName": "t", "Item": item})


def _in_one(s3: SignedConnection, dynamodb: SignedConnection, batch: list[Message]) -> None:
    for one in batch:
        s3.put("/b/agent-runs/acme/run-1/1-0a1b2c3d.json.gz", one.content)
        puts = [{"PutRequest": {"Item": item}} for item in one.items]
        dynamodb.ask("BatchWriteItem", {"RequestItems": {"t": puts}})
