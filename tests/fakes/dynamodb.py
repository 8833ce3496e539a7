"""DynamoDB in memory: one table, its stream, its write units, behind boto3's client interface."""

import base64
import math
import zlib
from collections.abc import Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

from tests.fakes import dynamodb_rules as rules
from tests.fakes import expressions
from tests.fakes.calls import Calls, client_error
from tests.fakes.expressions import InvalidExpression, Item, Value

STREAM_ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/2026-01-02T03:04:05.678"
INDEXES = {
    "GSI1": ("GSI1PK", "GSI1SK", ("status", "pipeline")),
    "GSI2": ("GSI2PK", "GSI2SK", ()),
}


class MemoryDynamoDB:
    """The requests that runtally makes, with the answers that AWS documents.

    `page_bytes` is how much a Query reads before it pages (1 MB at AWS), `batch_gets` how many
    items a BatchGetItem returns before it leaves the rest unprocessed, `batch_deletes` how many a
    BatchWriteItem deletes. The stream keeps, per
    partition key, the order of changes; a write that changes nothing leaves no record. Items are
    replaced, never changed in place, so that what was handed out stays as it was.
    """

    def __init__(self, calls: Calls | None = None, page_bytes: int = 1024 * 1024) -> None:
        self.calls = calls or Calls()
        self.page_bytes = page_bytes
        self.items: dict[tuple[str, str], Item] = {}
        self.stream: list[dict[str, Any]] = []
        self.write_units = 0
        self.read_units = 0.0
        self.batch_gets = 100
        self.batch_deletes = 25
        self._before: dict[tuple[str, str], Item | None] = {}
        self._sizes: dict[tuple[str, str], tuple[Item, int]] = {}
        self._sequence = 10**20

    def get_item(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            rules.check_keys("GetItem", request["Key"])
            key = _key(request["Key"])
            item = self._seen_by(request).get(key)
            self.read_units += _read_units(self._size_of(key, item) if item else 0, request)
            if item is None:
                return {}
            return {"Item": self._projected(item, request)}

        return self.calls("dynamodb.get_item", apply)

    def put_item(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            new = request["Item"]
            rules.check_keys("PutItem", new)
            key = _key(new)
            self._check("PutItem", key, request)
            return self._write("PutItem", key, new)

        return self.calls("dynamodb.put_item", apply)

    def update_item(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            key = _key(request["Key"])
            self._check("UpdateItem", key, request)
            old = self.items.get(key, request["Key"])
            try:
                text = request["UpdateExpression"]
                new = expressions.updated(text, old, *rules.definitions(request))
            except (InvalidExpression, ArithmeticError) as error:
                raise client_error("UpdateItem", "ValidationException", str(error)) from error
            answer = self._write("UpdateItem", key, new)
            return {**answer, "Attributes": new}

        return self.calls("dynamodb.update_item", apply)

    def delete_item(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            self._remove(_key(request["Key"]))
            return {}

        return self.calls("dynamodb.delete_item", apply)

    def _remove(self, key: tuple[str, str]) -> None:
        old = self.items.pop(key, None)
        if old is not None:
            self._record("REMOVE", key, old, None)

    def query(self, **request: Any) -> dict[str, Any]:
        return self.calls("dynamodb.query", lambda: self._query(request))

    def _query(self, request: dict[str, Any]) -> dict[str, Any]:
        index = request.get("IndexName")
        partition_name, sort_name, included = INDEXES[index] if index else ("PK", "SK", None)
        expected = f"{partition_name} = :pk AND {sort_name} BETWEEN :first AND :last"
        if request["KeyConditionExpression"] != expected:
            raise InvalidExpression(request["KeyConditionExpression"])
        key_names = tuple(dict.fromkeys((sort_name, "PK", "SK", partition_name)))
        in_index = None if included is None else (*key_names, *included)
        if wrong := rules.wrong_with_query(request, partition_name, key_names, in_index):
            raise client_error("Query", "ValidationException", wrong)
        values = request["ExpressionAttributeValues"]
        wanted = values[":pk"]["S"], values[":first"]["S"], values[":last"]["S"]

        places = [
            (place, item)
            for key, item in self._seen_by(request).items()
            if (place := _place(key, item, partition_name, sort_name)) is not None
            and place[0] == wanted[0]
            and wanted[1] <= place[1] <= wanted[2]
        ]
        backwards = not request.get("ScanIndexForward", True)
        if after := request.get("ExclusiveStartKey"):
            start = _place(_key(after), after, partition_name, sort_name) or ()
            places = [at for at in places if (at[0] < start if backwards else at[0] > start)]
        found = [item for _, item in sorted(places, key=itemgetter(0), reverse=backwards)]
        page: list[Item] = []
        size = 0
        for read, item in enumerate(found, 1):
            shown = item if in_index is None else _only(item, in_index)
            size += self._size_of(_key(item), item) if in_index is None else item_size(shown)
            text = request.get("FilterExpression")
            if not text or expressions.holds(text, shown, *rules.definitions(request)):
                page.append(self._projected(shown, request))
            if size >= self.page_bytes or read == request.get("Limit"):
                self.read_units += _read_units(size, request)
                return {"Items": page, "LastEvaluatedKey": _only(item, key_names)}
        self.read_units += _read_units(size, request)
        return {"Items": page}

    def scan(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            segment, segments = request["Segment"], request["TotalSegments"]
            if not 0 <= segment < segments:
                raise client_error("Scan", "ValidationException", "segment out of bounds")
            names, values = rules.definitions(request)
            found = [
                (key, item)
                for key, item in sorted(self._seen_by(request).items())
                if zlib.crc32(key[0].encode()) % segments == segment
            ]
            if after := request.get("ExclusiveStartKey"):
                found = [at for at in found if at[0] > _key(after)]
            page: list[Item] = []
            size = 0
            for key, item in found:
                size += self._size_of(key, item)
                if expressions.holds(request["FilterExpression"], item, names, values):
                    page.append(self._projected(item, request))
                if size >= self.page_bytes:
                    return {"Items": page, "LastEvaluatedKey": _only(item, ("PK", "SK"))}
            return {"Items": page}

        return self.calls("dynamodb.scan", apply)

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            ((table, asked),) = request["RequestItems"].items()
            wanted = [_key(key) for key in asked["Keys"]]
            if not 0 < len(wanted) <= 100 or len(set(wanted)) != len(wanted):
                raise client_error("BatchGetItem", "ValidationException", "1 to 100 distinct keys")
            seen = self._seen_by(asked)
            answered, left = wanted[: self.batch_gets], wanted[self.batch_gets :]
            return {
                "Responses": {table: [seen[key] for key in answered if key in seen]},
                "UnprocessedKeys": {
                    table: {**asked, "Keys": [{"PK": {"S": p}, "SK": {"S": s}} for p, s in left]}
                }
                if left
                else {},
            }

        return self.calls("dynamodb.batch_get_item", apply)

    def batch_write_item(self, **request: Any) -> dict[str, Any]:
        """Deletes alone: nothing puts items in batches, which know no conditions."""

        def apply() -> dict[str, Any]:
            ((table, asked),) = request["RequestItems"].items()
            wanted = [_key(each["DeleteRequest"]["Key"]) for each in asked]
            if not 0 < len(wanted) <= 25 or len(set(wanted)) != len(wanted):
                raise client_error("BatchWriteItem", "ValidationException", "1 to 25 distinct keys")
            units = 0
            for key in wanted[: self.batch_deletes]:
                old = self.items.get(key)
                units += _units(self._size_of(key, old)) + _index_units(old, {}) if old else 1
                self._remove(key)
            self.write_units += units
            left = asked[self.batch_deletes :]
            return {
                "UnprocessedItems": {table: left} if left else {},
                "ConsumedCapacity": [{"TableName": table, "CapacityUnits": float(units)}],
            }

        return self.calls("dynamodb.batch_write_item", apply)

    def close(self) -> None:
        """There are no connections to close."""

    def _size_of(self, key: tuple[str, str], item: Item) -> int:
        """Measured once: items are replaced, never changed."""
        measured, size = self._sizes.get(key, (None, 0))
        if measured is not item:
            size = item_size(item)
            self._sizes[key] = item, size
        return size

    def settle(self) -> None:
        """Let reads that are not strongly consistent catch up."""
        self._before.clear()

    def _seen_by(self, request: dict[str, Any]) -> dict[tuple[str, str], Item]:
        """A read that is not strongly consistent sees no item as its last write left it."""
        if request.get("ConsistentRead"):
            return self.items
        behind = {key: item for key, item in self._before.items() if item is not None}
        return {k: v for k, v in self.items.items() if k not in self._before} | behind

    def _projected(self, item: Item, request: dict[str, Any]) -> Item:
        if "ProjectionExpression" not in request:
            return item
        return _only(item, rules.named(request, "ProjectionExpression"))

    def _check(self, operation: str, key: tuple[str, str], request: dict[str, Any]) -> None:
        old = self.items.get(key, {})
        condition = request.get("ConditionExpression")
        try:
            rules.check_all_used(request)
            met = condition is None or expressions.holds(
                condition, old, *rules.definitions(request)
            )
        except InvalidExpression as error:
            raise client_error(operation, "ValidationException", str(error)) from error
        if not met:
            # A refused write is billed as if it had been done on the item that stands there.
            self.write_units += _units(self._size_of(key, old) if old else 0)
            wanted = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            more: dict[str, Any] = {"Item": old} if wanted and old else {}
            raise client_error(operation, "ConditionalCheckFailedException", **more)

    def _write(self, operation: str, key: tuple[str, str], new: Item) -> dict[str, Any]:
        size = item_size(new)
        rules.check_item(operation, new, size)
        old = self.items.get(key)
        self.items[key] = new
        self._before[key] = old
        old_size = self._size_of(key, old) if old else 0
        self._sizes[key] = new, size
        units = _units(max(size, old_size)) + _index_units(old or {}, new)
        self.write_units += units
        if old != new:
            self._record("MODIFY" if old else "INSERT", key, old, new)
        return {"ConsumedCapacity": {"CapacityUnits": float(units)}}

    def _record(self, name: str, key: tuple[str, str], old: Item | None, new: Item | None) -> None:
        self._sequence += 1
        images = {"OldImage": old, "NewImage": new}
        self.stream.append(
            {
                "eventID": f"{self._sequence:032x}",
                "eventName": name,
                "eventSource": "aws:dynamodb",
                "eventSourceARN": STREAM_ARN,
                "awsRegion": "us-east-1",
                "eventVersion": "1.1",
                "dynamodb": {
                    "ApproximateCreationDateTime": 1_790_000_000,
                    "Keys": {"PK": {"S": key[0]}, "SK": {"S": key[1]}},
                    "SequenceNumber": str(self._sequence),
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                    **{k: as_lambda_delivers(v) for k, v in images.items() if v is not None},
                },
            }
        )


def as_lambda_delivers(item: Item) -> Item:
    """Lambda's event is JSON, so bytes come as base64 text."""
    return {name: _as_json(value) for name, value in item.items()}


def _as_json(value: Value) -> Value:
    ((kind, plain),) = value.items()
    if kind == "B":
        return {"B": base64.b64encode(plain).decode()}
    if kind == "L":
        return {"L": [_as_json(one) for one in plain]}
    if kind == "M":
        return {"M": as_lambda_delivers(plain)}
    return value


def item_size(item: Item) -> int:
    """Bytes as AWS counts them:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Value) -> int:
    ((kind, plain),) = value.items()
    if kind == "S":
        return len(str(plain).encode())
    if kind == "B":
        return len(bytes(plain))
    if kind == "N":
        return math.ceil(rules.digits(Decimal(plain)) / 2) + 1 + str(plain).startswith("-")
    if kind == "L":
        return 3 + sum(1 + _value_size(one) for one in plain)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_size(one) for name, one in plain.items())
    return 1


def _units(size: int) -> int:
    return max(1, math.ceil(size / 1024))


def _read_units(size: int, request: dict[str, Any]) -> float:
    """Of one request, by the items that it reads, whatever of them it returns."""
    units = max(1, math.ceil(size / 4096))
    return units if request.get("ConsistentRead") else units / 2


def _index_units(old: Item, new: Item) -> int:
    """One write for each entry of an index that appears, goes or changes; a new key is two."""
    units = 0
    for partition, sort, included in INDEXES.values():
        names = (partition, sort, "PK", "SK", *included)
        before, after = (
            _only(item, names) if partition in item and sort in item else None
            for item in (old, new)
        )
        if before == after:
            continue
        moved = (
            before
            and after
            and (before[partition], before[sort])
            != (
                after[partition],
                after[sort],
            )
        )
        units += 2 if moved else 1
    return units


def _place(
    key: tuple[str, str], item: Item, partition_name: str, sort_name: str
) -> tuple[str, ...] | None:
    """Partition and sort key, and what orders items of an index with equal keys; None for an item
    that is not in the index."""
    if partition_name == "PK":
        return key
    if partition_name not in item or sort_name not in item:
        return None
    return item[partition_name]["S"], item[sort_name]["S"], *key


def _only(item: Item, names: Sequence[str]) -> Item:
    return {name: item[name] for name in names if name in item}


def _key(attributes: Item) -> tuple[str, str]:
    return attributes["PK"]["S"], attributes["SK"]["S"]
