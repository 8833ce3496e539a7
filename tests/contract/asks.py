"""What can be asked of a place, by fakes and embedded AWS alike; see test_conformance."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.dynamodb_lines import REFUSED, SORT_KEYS, Attributes, n, s
from tests.contract.place import Place, without_key

type Ask = Callable[..., object]

UNMET = {
    "ConditionExpression": "attribute_exists(#gone)",
    "ExpressionAttributeNames": {"#gone": "gone"},
}


def answer(ask: Ask, *arguments: Any) -> object:
    """What is answered, or the code of the error."""
    try:
        return ask(*arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]


def definitions(expression: str, given: Attributes) -> dict[str, Any]:
    """`#name` stands for the attribute `name`; what is given beyond need is sent all the same."""
    names = {word: word[1:] for word in re.findall(r"#\w+", expression)}
    names |= {word: name for word, name in given.items() if word.startswith("#")}
    values = {word: value for word, value in given.items() if word.startswith(":")}
    request = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return {part: defined for part, defined in request.items() if defined}


def condition(place: Place, item: Attributes | None, text: str, given: Attributes) -> bool:
    """Whether a put on the item was accepted."""
    if item is not None:
        place.put(item)
    try:
        place.put({"new": n(1)}, ConditionExpression=text, **definitions(text, given))
    except ClientError as error:
        if error.response["Error"]["Code"] != REFUSED:
            raise
        assert place.get() == item
        return False
    return True


def update(place: Place, item: Attributes | None, text: str, given: Attributes) -> object:
    """The item after the update."""
    if item is not None:
        place.put(item)
    try:
        place.update(UpdateExpression=text, **definitions(text, given))
    except ClientError:
        assert place.get() == item
        raise
    return place.get()


def put(place: Place, attributes: Attributes) -> bool:
    """Whether the item reads back as it was written."""
    place.put(attributes)
    key = {name: (place.key | attributes)[name] for name in place.key}
    return place.get(key) == without_key(attributes)


def query(place: Place, asked: dict[str, Any]) -> object:
    """The sort keys found, and the one to go on after."""
    for sort_key in SORT_KEYS:
        place.put({"SK": s(sort_key), "label": s(sort_key)})
    request = {name: value for name, value in asked.items() if name[0] not in ":#"}
    where, after_key = request.pop("where", ""), request.pop("after", None)
    if where:
        request["FilterExpression"] = where
    if after_key:
        request["ExclusiveStartKey"] = place.key | {"SK": s(after_key)}
    given = {word: value for word, value in asked.items() if word[0] in ":#"}
    page = place.query(**request, **definitions(where, given))
    last = page.get("LastEvaluatedKey")
    return tuple(item["SK"]["S"] for item in page["Items"]), last and last["SK"]["S"]


def in_index(place: Place, *writes: Attributes) -> list[Attributes]:
    """What an index holds after the writes."""
    for attributes in writes:
        place.put({"GSI1PK": s(place.name)} | attributes)
    found = [without_key(item) for item in place.query("GSI1")["Items"]]
    assert all(item.pop("GSI1PK") == s(place.name) for item in found)
    return found


def index_page(place: Place, **request: Any) -> list[str]:
    """The names in the key to go on after, of an index with one item."""
    in_index(place, {"GSI1SK": s("a")})
    return sorted(place.query("GSI1", Limit=1, **request)["LastEvaluatedKey"])


def refused_put(place: Place, *items: Attributes, **request: Any) -> object:
    """The item that comes with the refusal of one more put."""
    for item in items:
        place.put(item)
    with pytest.raises(ClientError, match=REFUSED) as refusal:
        place.put({}, **UNMET, **request)
    response: dict[str, Any] = {**refusal.value.response}
    old = response.get("Item")
    return old and without_key(old)


def stored(place: Place, content: bytes, **request: Any) -> bytes:
    """What a read finds, of a whole object or of a range."""
    place.store(content)
    return place.read(**request)


def stored_twice(place: Place, **request: Any) -> object:
    """The answer to a second put of the key, and what stands there then."""
    place.store(b"1")
    return answer(lambda: place.store(b"2", **request)), place.read()


def described(place: Place, field: str, **request: Any) -> object:
    """What a read of three bytes tells beside the bytes."""
    place.store(b"abc", Metadata={"buckets": "8"})
    described: object = place.head(**request)[field]
    return described


def sent(place: Place, *message: Any, **request: Any) -> list[str]:
    place.send(*message, **request)
    return [message["Body"] for message in place.receive()]


def sent_batch(place: Place, *bodies: str, **request: Any) -> object:
    """Entries that failed, and bodies that arrived."""
    return place.send_batch(*bodies, **request), [one["Body"] for one in place.receive()]


def receives(place: Place) -> list[str]:
    """How often a message that is never hidden says it was received, three times."""
    place.send("body")
    return [place.receive()[0]["Attributes"]["ApproximateReceiveCount"] for _ in range(3)]


def after(place: Place, *calls: Callable[..., object], hidden_s: int = 30) -> int:
    """How many messages can be received after calls with the receipt of the only one."""
    place.send("body")
    (message,) = place.receive(hidden_s)
    for call in calls:
        call(message["ReceiptHandle"])
    return len(place.receive())


def told(place: Place) -> dict[str, str]:
    """What a message says beside its body: of its sender, and of SQS what is the same each time."""
    place.send("body", {"reason": "r"}, MessageGroupId="acme")
    (message,) = place.receive(MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"])
    assert len(message["Attributes"]["SentTimestamp"]) == len("1795984949000")
    given = {
        k: f"{v['DataType']} {v['StringValue']}" for k, v in message["MessageAttributes"].items()
    }
    return {"group": message["Attributes"]["MessageGroupId"], **given}


def counted(place: Place) -> tuple[int, int]:
    """Of two messages, one of them received: how many are visible, and how many are not."""
    place.send("a")
    place.send("b")
    place.receive(30, MaxNumberOfMessages=1)
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = place.sqs.get_queue_attributes(**place.queue, AttributeNames=names)
    visible, hidden = (int(answer["Attributes"][name]) for name in names)
    return visible, hidden


def shown_together(place: Place) -> tuple[list[str], list[str]]:
    """Three are received, the second is deleted, all are shown again: what fails, what is there."""
    for body in "abc":
        place.send(body)
    messages = sorted(place.receive(30), key=lambda message: str(message["Body"]))
    place.delete(messages[1]["ReceiptHandle"])
    entries = [
        {"Id": m["Body"], "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0}
        for m in messages
    ]
    answer = place.sqs.change_message_visibility_batch(**place.queue, Entries=entries)
    there = sorted(message["Body"] for message in place.receive())
    return [failed["Id"] for failed in answer.get("Failed", [])], there
