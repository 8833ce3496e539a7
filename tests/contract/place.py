"""Where one line of test_conformance asks: a place in each service that no other line touches."""

import itertools
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from tests.contract.conftest import Services
from tests.contract.dynamodb_lines import Attributes, s
from tests.fakes.dynamodb import MemoryDynamoDB

_numbers = itertools.count(1)


class Place:
    """A partition, an object's key and a queue that no other line has touched."""

    def __init__(self, services: Services) -> None:
        self.dynamodb, self.s3, self.sqs = services.dynamodb, services.s3, services.sqs
        self.name = f"conformance-{next(_numbers):04}"
        self.table = {"TableName": services.table_name}
        self.key = {"PK": s(self.name), "SK": s("a")}
        self.object = {"Bucket": services.bucket, "Key": self.name}

    @cached_property
    def queue(self) -> dict[str, str]:
        return {"QueueUrl": self.sqs.create_queue(QueueName=self.name)["QueueUrl"]}

    def put(self, attributes: Attributes, **request: Any) -> None:
        self.dynamodb.put_item(**self.table, Item=self.key | attributes, **request)

    def update(self, **request: Any) -> None:
        self.dynamodb.update_item(**self.table, Key=self.key, **request)

    def get(self, key: Attributes | None = None) -> Attributes | None:
        answer = self.dynamodb.get_item(**self.table, Key=key or self.key, ConsistentRead=True)
        return without_key(answer["Item"]) if "Item" in answer else None

    def query(self, index: str = "", **request: Any) -> dict[str, Any]:
        """Between `:first` and `:last` of the partition, or of the index's of that name."""
        values = {":pk": s(self.name), ":first": s(" "), ":last": s("😀")}
        values |= request.pop("ExpressionAttributeValues", {})
        if index:
            request["IndexName"] = index
        if isinstance(self.dynamodb, MemoryDynamoDB):
            self.dynamodb.settle()
        answer: dict[str, Any] = self.dynamodb.query(
            **{"ConsistentRead": not index} | self.table | request,
            KeyConditionExpression=f"{index}PK = :pk AND {index}SK BETWEEN :first AND :last",
            ExpressionAttributeValues=values,
        )
        return answer

    def get_many(self, sort_keys: Iterable[str]) -> list[str]:
        keys = [self.key | {"SK": s(sort_key)} for sort_key in sort_keys]
        (table,) = self.table.values()
        wanted = {table: {"Keys": keys, "ConsistentRead": True}}
        answer = self.dynamodb.batch_get_item(RequestItems=wanted)
        return sorted(item["SK"]["S"] for item in answer["Responses"][table])

    def store(self, content: bytes, **request: Any) -> None:
        self.s3.put_object(**self.object | {"Body": content} | request)

    def head(self, **request: Any) -> dict[str, Any]:
        """Of an object, or of a range of it, all but the bytes."""
        answer: dict[str, Any] = self.s3.get_object(**self.object, **request)
        answer["Body"].close()
        return answer

    def read(self, **request: Any) -> bytes:
        content: bytes = self.s3.get_object(**self.object, **request)["Body"].read()
        return content

    def send(self, body: str, attributes: dict[str, str] | None = None, **request: Any) -> None:
        typed = {k: {"DataType": "String", "StringValue": v} for k, v in (attributes or {}).items()}
        more = {"MessageAttributes": typed} if typed else {}
        self.sqs.send_message(**self.queue, MessageBody=body, **more, **request)

    def send_batch(self, *bodies: str, ids: str = "0123456789a") -> list[tuple[str, str]]:
        """The entries that failed, and why."""
        entries = [{"Id": i, "MessageBody": b} for i, b in zip(ids, bodies, strict=False)]
        answer = self.sqs.send_message_batch(**self.queue, Entries=entries)
        return [(failed["Id"], failed["Code"]) for failed in answer.get("Failed", [])]

    def receive(self, hidden_s: int = 0, **request: Any) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(
            **self.queue,
            VisibilityTimeout=hidden_s,
            **{
                "MaxNumberOfMessages": 10,
                "MessageSystemAttributeNames": ["ApproximateReceiveCount"],
            }
            | request,
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def delete(self, receipt: str) -> None:
        self.sqs.delete_message(**self.queue, ReceiptHandle=receipt)

    def show(self, receipt: str) -> None:
        """Make the message visible to others."""
        request = {"ReceiptHandle": receipt, "VisibilityTimeout": 0}
        self.sqs.change_message_visibility(**self.queue, **request)


def without_key(item: Attributes) -> Attributes:
    return {name: value for name, value in item.items() if name not in {"PK", "SK"}}
