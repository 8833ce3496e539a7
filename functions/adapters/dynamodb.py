"""DynamoDB's requests on one table, in plain Python values, with the two answers that matter.

A write whose condition fails answers with the item that stands there; anything else that is not
success is Unavailable. Attributes of an expression are named and numbered here, so that no caller
has to know which words DynamoDB reserves.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.attributes import from_attributes, to_attributes
from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.items import Item
from functions.core.keys import ItemKey

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_KEYS_A_REQUEST: Final = 100
KEYS_A_DELETE: Final = 25

NOT_THERE: Final = f"attribute_not_exists({keys.PARTITION})"


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A condition did not hold; `item` is what stands in the table, None when nothing does."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("condition not met")
        self.item = item


@dataclass(frozen=True, slots=True)
class Span:
    """Items of one partition, of the table or of an index, between two sort keys, both included."""

    partition: str
    first: str
    last: str
    index: Literal["", "GSI1", "GSI2"] = ""
    newest_first: bool = False

    @property
    def key_names(self) -> tuple[str, str]:
        """Names as they stand in an expression: none of them is reserved."""
        return f"{self.index}{keys.PARTITION}", f"{self.index}{keys.SORT}"


class Page(NamedTuple):
    """`last` is the key to go on after; None when the span has been read to its end."""

    items: list[Item]
    last: Mapping[str, str] | None


class DynamoDBTable:
    """One table, and what writing to it consumed."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self._name = name
        self._lock = threading.Lock()
        self._write_units = 0.0
        self._refused_writes = 0

    def get(self, key: ItemKey, attributes: Sequence[str] = ()) -> Item | None:
        """The item now (strongly consistent), or None."""
        request: dict[str, Any] = {"Key": _key(key), "ConsistentRead": True}
        answer = self._call("get_item", TableName=self._name, **request, **_projection(attributes))
        return from_attributes(answer["Item"]) if "Item" in answer else None

    def put(self, item: Item, condition: str, values: Mapping[str, Any] | None = None) -> None:
        """Write the whole item. Raises Refused."""
        request: dict[str, Any] = {
            "Item": to_attributes(item),
            "ConditionExpression": condition,
            **_names_in(condition),
        }
        if values:
            request["ExpressionAttributeValues"] = to_attributes(values)
        self._write("put_item", request)

    def update(
        self, key: ItemKey, expression: str, condition: str, values: Mapping[str, Any]
    ) -> Item:
        """Change the item and return it whole as it is now. Raises Refused."""
        request: dict[str, Any] = {
            "Key": _key(key),
            "UpdateExpression": expression,
            "ReturnValues": "ALL_NEW",
            **_names_in(f"{expression} {condition}"),
        }
        if condition:
            request["ConditionExpression"] = condition
        if values:
            request["ExpressionAttributeValues"] = to_attributes(values)
        return from_attributes(self._write("update_item", request)["Attributes"])

    def query(
        self,
        partition: str,
        prefix: str,
        attributes: Sequence[str] = (),
        *,
        after: str = "",
        limit: int | None = None,
    ) -> Iterator[Item]:
        """All items of a partition whose sort key begins so, or those behind `after`, in order
        (strongly consistent); at most `limit` a request, which is made as they are taken."""
        span = Span(partition, *keys.beginning_with(prefix))
        last = {keys.PARTITION: partition, keys.SORT: after} if after else None
        for found in self.pages(span, after=last, attributes=attributes, limit=limit):
            yield from found

    def pages(
        self,
        span: Span,
        *,
        after: Mapping[str, str] | None = None,
        limit: int | None = None,
        attributes: Sequence[str] = (),
    ) -> Iterator[list[Item]]:
        """The items of a span, as many at a time as one request brings; each request is made when
        its page is taken."""
        while True:
            page = self.page(span, after=after, limit=limit, attributes=attributes)
            yield page.items
            if page.last is None:
                return
            after = page.last

    def page(
        self,
        span: Span,
        *,
        after: Mapping[str, str] | None = None,
        limit: int | None = None,
        attributes: Sequence[str] = (),
        where: Mapping[str, str] | None = None,
    ) -> Page:
        """One request's worth of a span: at most 1 MB, or `limit` items, of which those remain
        whose attributes equal `where`. A page may be empty and still not be the last.

        Strongly consistent, except on an index: that lags behind the table.
        """
        where = where or {}
        names = {f"#{name}": name for name in (*attributes, *where)}
        partition, sort = span.key_names
        request: dict[str, Any] = {
            "TableName": self._name,
            "KeyConditionExpression": f"{partition} = :pk AND {sort} BETWEEN :first AND :last",
            "ExpressionAttributeValues": to_attributes(
                {":pk": span.partition, ":first": span.first, ":last": span.last}
                | {f":{name}": value for name, value in where.items()}
            ),
            "ScanIndexForward": not span.newest_first,
            **({"IndexName": span.index} if span.index else {"ConsistentRead": True}),
        }
        if attributes:
            request["ProjectionExpression"] = ", ".join(f"#{name}" for name in attributes)
        if where:
            request["FilterExpression"] = " AND ".join(f"#{name} = :{name}" for name in where)
        if names:
            request["ExpressionAttributeNames"] = names
        if limit is not None:
            request["Limit"] = limit
        if after is not None:
            request["ExclusiveStartKey"] = to_attributes(after)
        answer = self._call("query", **request)
        last = answer.get("LastEvaluatedKey")
        found = [from_attributes(item) for item in answer["Items"]]
        return Page(found, from_attributes(last) if last else None)

    def get_many(self, wanted: Sequence[ItemKey], *, consistent: bool) -> dict[ItemKey, Item]:
        """Those of the items that exist, 100 a request."""
        found: dict[ItemKey, Item] = {}
        for start in range(0, len(wanted), _KEYS_A_REQUEST):
            pending = [_key(key) for key in wanted[start : start + _KEYS_A_REQUEST]]
            while pending:
                asked = {self._name: {"Keys": pending, "ConsistentRead": consistent}}
                answer = self._call("batch_get_item", RequestItems=asked)
                for item in map(from_attributes, answer["Responses"].get(self._name, ())):
                    found[ItemKey(item[keys.PARTITION], item[keys.SORT])] = item
                left = answer.get("UnprocessedKeys", {}).get(self._name, {}).get("Keys", [])
                if len(left) == len(pending):
                    raise Unavailable("DynamoDB batch_get_item: throttled")
                pending = left
        return found

    def scan(
        self, prefix: str, segment: int, segments: int, attributes: Sequence[str] = ()
    ) -> Iterator[list[Item]]:
        """Page by page one segment of the whole table, and of it the items whose partition key
        begins so (strongly consistent). Reads, and costs, all that the table holds."""
        after: Mapping[str, Any] = {}
        while True:
            names = {f"#{name}": name for name in (*attributes, keys.PARTITION)}
            answer = self._call(
                "scan",
                TableName=self._name,
                Segment=segment,
                TotalSegments=segments,
                ConsistentRead=True,
                FilterExpression=f"begins_with(#{keys.PARTITION}, :prefix)",
                ProjectionExpression=", ".join(names),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=to_attributes({":prefix": prefix}),
                **after,
            )
            yield [from_attributes(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return
            after = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def delete_many(self, unwanted: Sequence[ItemKey]) -> None:
        """Delete items, 25 at most, whether they are there or not."""
        pending = [{"DeleteRequest": {"Key": _key(key)}} for key in unwanted]
        while pending:
            answer = self._call(
                "batch_write_item",
                RequestItems={self._name: pending},
                ReturnConsumedCapacity="TOTAL",
            )
            for consumed in answer.get("ConsumedCapacity", ()):
                self._count_units(consumed)
            left = answer.get("UnprocessedItems", {}).get(self._name, [])
            if len(left) == len(pending):
                raise Unavailable("DynamoDB batch_write_item: throttled")
            pending = left

    def take_consumption(self) -> dict[str, float]:
        """What was consumed since the last call, by metric: write units with those of the indexes,
        and refused writes, whose units AWS bills but does not tell."""
        with self._lock:
            taken = {"WriteUnits": self._write_units, "RefusedWrites": self._refused_writes}
            self._write_units = self._refused_writes = 0
        return taken

    def _write(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._call(
                operation,
                TableName=self._name,
                **request,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ReturnConsumedCapacity="TOTAL",
            )
        except Refused:
            with self._lock:
                self._refused_writes += 1
            raise
        self._count_units(answer.get("ConsumedCapacity", {}))
        return answer

    def _count_units(self, consumed: Mapping[str, Any]) -> None:
        with self._lock:
            self._write_units += consumed.get("CapacityUnits", 0)

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                old = error.response.get("Item")
                raise Refused(from_attributes(old) if old else None) from None  # type: ignore[arg-type]
            raise Unavailable(f"DynamoDB {operation}: {error}") from error
        except BotoCoreError as error:
            raise Unavailable(f"DynamoDB {operation}: {error}") from error
        return answer


def _key(key: ItemKey) -> dict[str, Any]:
    return to_attributes({keys.PARTITION: key.partition, keys.SORT: key.sort})


def _projection(attributes: Sequence[str]) -> dict[str, Any]:
    if not attributes:
        return {}
    return {
        "ProjectionExpression": ", ".join(f"#{name}" for name in attributes),
        "ExpressionAttributeNames": {f"#{name}": name for name in attributes},
    }


def _names_in(expression: str) -> dict[str, Any]:
    """`#name` in an expression stands for the attribute `name`."""
    words = expression.replace("(", " ").replace(")", " ").replace(",", " ").replace(".", " ")
    names = {word: word[1:] for word in words.split() if word.startswith("#")}
    return {"ExpressionAttributeNames": names} if names else {}
