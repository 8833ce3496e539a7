"""A boto3 session that counts what its clients do: requests, and the write units that DynamoDB
tells of them. Imported by programs with packages of their own: it needs boto3 alone.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import boto3

BILLED_PUTS = ("PutObject", "CopyObject", "ListObjectsV2", "ListObjects", "CreateBucket")
"""Requests to S3 that cost what a PUT costs; a DELETE costs nothing, others what a GET costs."""
FREE = ("DeleteObject", "DeleteObjects", "HeadBucket", "PutBucketLifecycleConfiguration",
        "GetBucketLifecycleConfiguration")  # fmt: skip


class Counted:
    """`session` is for the peer, whose every client is counted; `make` is for what comes before."""

    def __init__(self) -> None:
        self.session = boto3.Session()
        self.requests: Counter[str] = Counter()
        self.write_units = 0.0
        events = self.session.events
        events.register("provide-client-params.dynamodb.*", _ask_for_units)
        events.register("after-call.dynamodb.*", self._after_dynamodb)
        events.register("after-call.s3.*", self._after_s3)

    def usage(self) -> dict[str, float]:
        """By the names that the benchmark has prices for. Reads of DynamoDB are not priced: the
        embedded AWS does not say what they consume."""
        puts = sum(self.requests[f"s3.{name}"] for name in BILLED_PUTS)
        free = sum(self.requests[f"s3.{name}"] for name in FREE)
        s3 = sum(n for name, n in self.requests.items() if name.startswith("s3."))
        return {"s3_puts": puts, "s3_gets": s3 - puts - free, "write_units": self.write_units}

    def tell(self, steps: int, **seen: Any) -> None:
        """What the benchmark reads, as the last line of standard output."""
        told = {"steps": steps, "counted": self.usage(), "requests": dict(self.requests), **seen}
        sys.stdout.write(f"{json.dumps(told)}\n")

    def _after_dynamodb(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        self.requests[f"dynamodb.{model.name}"] += 1
        consumed = parsed.get("ConsumedCapacity", [])
        if model.name in WRITES:
            for each in consumed if isinstance(consumed, list) else [consumed]:
                self.write_units += each["CapacityUnits"]

    def _after_s3(self, model: Any, **_: Any) -> None:
        self.requests[f"s3.{model.name}"] += 1


WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")


def _ask_for_units(params: dict[str, Any], **_: Any) -> dict[str, Any]:
    return {**params, "ReturnConsumedCapacity": "TOTAL"}


def steps() -> list[dict[str, Any]]:
    """The calls to record, as the benchmark hands them over."""
    return list(json.loads(Path(os.environ["RUNTALLY_BENCHMARK_STEPS"]).read_text("utf-8")))


def bucket() -> str:
    boto3.client("s3").create_bucket(Bucket="peer")
    return "peer"


def table(name: str = "peer") -> str:
    """With the keys that all of them have: PK and SK."""
    boto3.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return name
