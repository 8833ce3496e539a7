"""How long Lambda works on a batch: CPU as measured here, waiting for AWS as a model.

CPU is that of the handlers over the fakes, the fakes' own included, and that of botocore for each
request, measured with answers that are there before the request leaves. Cold starts are left out:
a function is kept warm for minutes, and a batch comes every few seconds.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from boto3.session import Session
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from functions.adapters import clients

FULL_CORE_MB: Final = 1_769
"""Memory with which a function has one core; in proportion with less:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""

WAIT_S: Final = {
    "s3.put_object": 0.1,
    "s3.get_object": 0.1,
    "s3.head_object": 0.1,
    "dynamodb.get_item": 0.009,
    "dynamodb.put_item": 0.009,
    "dynamodb.update_item": 0.009,
    "dynamodb.query": 0.009,
    "sqs.send_message": 0.02,
    "events.put_events": 0.02,
}
"""S3: the lower end of 100 to 200 ms for small objects,
https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html; DynamoDB: the
upper end of single-digit milliseconds; SQS and EventBridge: tens of milliseconds."""

MEMORY_MB: Final = {"ingest": 1_024, "summarize": 512, "recount": 1_024}
"""As cdk/pipeline_stack.py gives it."""

_AT_ONCE: Final = {"ingest": {"dynamodb.put_item": clients.STEPS_AT_ONCE}}
_ROUNDS: Final = 40


class Stopwatch:
    """GB-seconds of functions, apart for CPU and waiting."""

    def __init__(self) -> None:
        self.gb_seconds = {"cpu": 0.0, "waiting": 0.0}

    @contextmanager
    def invocation(self, function: str, made: list[str], messages: int = 1) -> Iterator[None]:
        """One, that makes the requests which are in `made` after it and were not before. Messages
        of a batch are worked on at once, as the steps of a message are."""
        before, began = len(made), time.process_time()
        yield
        requests = Counter(made[before:])
        cpu = time.process_time() - began
        cpu += sum(requests.values()) * request_cpu_s()
        memory_mb = MEMORY_MB[function]
        gb = memory_mb / 1_024
        self.gb_seconds["cpu"] += cpu * max(1, FULL_CORE_MB / memory_mb) * gb
        self.gb_seconds["waiting"] += _waiting_s(function, requests, messages) * gb


def _waiting_s(function: str, requests: Mapping[str, int], messages: int) -> float:
    at_once = _AT_ONCE.get(function, {})
    return sum(
        math.ceil(count / max(messages, at_once.get(call, 1))) * WAIT_S[call]
        for call, count in requests.items()
    )


@cache
def request_cpu_s() -> float:
    """CPU that botocore takes for a PutItem with the functions' settings: the best of some."""
    client = Session(region_name="us-east-1").client(
        "dynamodb",
        config=clients.CONFIG,
        aws_access_key_id="x",
        aws_secret_access_key="x",  # noqa: S106 - nothing is sent
    )
    events: Any = client.meta.events  # typed for handlers that answer nothing
    events.register("before-send.dynamodb.PutItem", _answered)
    item = {name: {"S": name * 12} for name in ("PK", "SK", "status", "phase", "agent", "model")}
    took = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        client.put_item(TableName="t", Item=item, ReturnConsumedCapacity="TOTAL")
        took.append(time.process_time() - began)
    return min(took)


def _answered(**_: Any) -> AWSResponse:
    return _Answer("https://dynamodb.us-east-1.amazonaws.com/", 200, HTTPHeaders(), None)


class _Answer(AWSResponse):
    @property
    def content(self) -> bytes:
        return b'{"ConsumedCapacity":{"TableName":"t","CapacityUnits":1.0}}'
