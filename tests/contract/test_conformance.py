"""What the functions rely on, line by line: the fakes and the embedded AWS answer as AWS does.

A line is a name, what is asked, and AWS's answer; a refusal is answered with the error's code.
"""

from typing import Any

import pytest

from tests.contract import asks, dynamodb_lines
from tests.contract.asks import (
    after,
    answer,
    counted,
    described,
    in_index,
    index_page,
    put,
    receives,
    refused_put,
    sent,
    sent_batch,
    shown_together,
    stored,
    stored_twice,
    told,
)
from tests.contract.conftest import Services
from tests.contract.dynamodb_lines import INVALID, Lines, ls, n, s
from tests.contract.place import Place
from tests.fakes.dynamodb import MemoryDynamoDB

pytestmark = pytest.mark.xdist_group("contract")

ONE_B = (("b",), None)
SIZE = "KeySchema: 2,048 and 1,024 bytes, of an index too; the write is refused"
ONCE_EACH = "Developer Guide, UpdateExpressions: each action keyword once, no paths that overlap"

EMULATOR_DIFFERS: dict[str, tuple[object, str]] = {
    "ADD keeps 38 digits": ({"a": n(10**37)}, "Developer Guide, data types: 38 digits"),
    "append to a number": ({"a": ls(n(2))}, "UpdateItem: list_append takes lists"),
    "a clause twice": ({"b": n(5)}, ONCE_EACH),
    "an attribute twice": ({"a": n(5)}, ONCE_EACH),
    "an attribute in two clauses": ({}, ONCE_EACH),
    "an index partition key of 2,049 bytes": (True, SIZE),
    "an index key of 1,025 bytes": (True, SIZE),
    "a filter on a key": (ONE_B, "Query: FilterExpression takes no key attributes"),
    "a filter on a key, nothing found": (((), None), "Query: FilterExpression, as above"),
    "an attribute not in the index": ([], "Query: only attributes projected into the index"),
    "an object key of 1,025 bytes": (None, "User Guide, object keys: 1,024 bytes"),
    "1 MiB and a byte, attributes included": (1, "SendMessage: attributes count towards the size"),
    "an empty attribute": (1, "SendMessage: name, type and value must not be empty"),
    "shown when visible": (1, "ChangeMessageVisibility: MessageNotInflight"),
}
"""Lines that the embedded AWS gets wrong: what it answers, and where AWS says otherwise."""


ONLY_GONE = {"ProjectionExpression": "#g", "ExpressionAttributeNames": {"#g": "gone"}}
OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
AT_A, AT_B = {"GSI1SK": s("a")}, {"GSI1SK": s("b")}
TWIN = AT_A | {"SK": s("b")}
SHOWN = AT_A | {"status": n(1)}
TABLE: Lines = (
    ("a refusal shows the item", lambda p: refused_put(p, {"x": n(1)}, **OLD), {"x": n(1)}),
    ("a refusal of no item shows none", lambda p: refused_put(p, **OLD), None),
    ("a refusal shows none unasked", lambda p: refused_put(p, {"x": n(1)}), None),
    ("a put replaces", lambda p: (put(p, {"x": n(1)}), put(p, {"y": n(1)})), (True, True)),
    ("get of no item", lambda p: p.get(), None),
    ("get with an empty key", lambda p: p.get(p.key | {"SK": s("")}), INVALID),
    ("many, some unknown", lambda p: (p.put({}), p.get_many("abc")), (None, ["a"])),
    ("many of none", lambda p: p.get_many(""), INVALID),
    ("100 at once", lambda p: p.get_many(map(str, range(100))), []),
    ("101 at once", lambda p: p.get_many(map(str, range(101))), INVALID),
    ("one twice", lambda p: p.get_many("aa"), INVALID),
    ("an index includes", lambda p: in_index(p, SHOWN | {"x": n(1)}), [SHOWN]),
    ("an index without a sort key", lambda p: in_index(p, {"x": n(1)}), []),
    ("moved in the index", lambda p: in_index(p, AT_A, AT_B), [AT_B]),
    ("gone from the index", lambda p: in_index(p, AT_A, {"GSI1PK": s("other")}), []),
    ("twins in the index", lambda p: in_index(p, AT_A, TWIN), [AT_A, AT_A]),
    ("where to go on in an index", index_page, ["GSI1PK", "GSI1SK", "PK", "SK"]),
    ("an attribute not in the index", lambda p: p.query("GSI1", **ONLY_GONE)["Items"], INVALID),
)

ONCE = {"IfNoneMatch": "*"}
BUCKET: Lines = (
    ("an object reads back", lambda p: stored(p, b"bytes"), b"bytes"),
    ("no object", lambda p: p.read(), "NoSuchKey"),
    ("no object's range", lambda p: p.read(Range="bytes=0-1"), "NoSuchKey"),
    ("if none matches", lambda p: (p.store(b"1", **ONCE), p.read()), (None, b"1")),
    ("if one matches", lambda p: stored_twice(p, **ONCE), ("PreconditionFailed", b"1")),
    ("replaced without a condition", stored_twice, (None, b"2")),
    ("the first bytes", lambda p: stored(p, b"abcde", Range="bytes=0-1"), b"ab"),
    ("the last byte", lambda p: stored(p, b"abcde", Range="bytes=4-4"), b"e"),
    ("a range past the end", lambda p: stored(p, b"abcde", Range="bytes=3-99"), b"de"),
    ("a range beyond the end", lambda p: stored(p, b"abcde", Range="bytes=5-6"), "InvalidRange"),
    ("a range of nothing", lambda p: stored(p, b"", Range="bytes=0-0"), "InvalidRange"),
    ("a range's length", lambda p: described(p, "ContentLength", Range="bytes=1-99"), 2),
    ("metadata", lambda p: described(p, "Metadata"), {"buckets": "8"}),
    ("an object key of 1,024 bytes", lambda p: p.store(b"", Key="é" * 512), None),
    ("an object key of 1,025 bytes", lambda p: p.store(b"", Key="x" * 1_025), "KeyTooLongError"),
)

MIB = 1024 * 1024
SQS = "AWS.SimpleQueueService."
WRONG, BAD = "InvalidParameterValue", "InvalidMessageContents"
REASON = {"reason": "r"}
LARGEST = "x" * (MIB - len("reason" + "String" + "r"))
QUEUE: Lines = (
    ("a message arrives", lambda p: sent(p, "\t\n\r é 😀"), ["\t\n\r é 😀"]),
    ("a control character", lambda p: sent(p, "a\x0bb"), BAD),
    ("a noncharacter", lambda p: sent(p, "\ufffe"), BAD),
    ("an empty body", lambda p: sent(p, ""), "MissingParameter"),
    ("1 MiB", lambda p: len(sent(p, "x" * MIB)), 1),
    ("1 MiB and a byte", lambda p: sent(p, "é" * (MIB // 2) + "x"), WRONG),
    ("1 MiB, attributes included", lambda p: len(sent(p, LARGEST, REASON)), 1),
    ("1 MiB and a byte, attributes included", lambda p: len(sent(p, LARGEST + "x", REASON)), WRONG),
    ("an empty attribute", lambda p: len(sent(p, "body", {"reason": ""})), WRONG),
    ("a group on a standard queue", lambda p: sent(p, "body", MessageGroupId="acme"), ["body"]),
    ("a batch of 10", lambda p: p.send_batch(*"0123456789"), []),
    ("a batch of 11", lambda p: p.send_batch(*"0123456789a"), f"{SQS}TooManyEntriesInBatchRequest"),
    ("a batch of none", sent_batch, f"{SQS}EmptyBatchRequest"),
    ("an id twice", lambda p: sent_batch(p, "a", "b", ids="11"), f"{SQS}BatchEntryIdsNotDistinct"),
    ("a batch over 1 MiB", lambda p: sent_batch(p, LARGEST, LARGEST), f"{SQS}BatchRequestTooLong"),
    ("a batch with one bad", lambda p: sent_batch(p, "a", "\0"), ([("1", BAD)], ["a"])),
    ("receives are counted", receives, ["1", "2", "3"]),
    ("11 at a time", lambda p: p.receive(MaxNumberOfMessages=11), WRONG),
    ("what a message tells", told, {"group": "acme", "reason": "String r"}),
    ("visible and hidden are counted", counted, (1, 1)),
    ("shown in a batch, one of them gone", shown_together, (["b"], ["a", "c"])),
    ("hidden once received", after, 0),
    ("visible again", lambda p: after(p, p.show), 1),
    ("deleted", lambda p: after(p, p.delete, hidden_s=0), 0),
    ("shown when visible", lambda p: after(p, p.show, hidden_s=0), f"{SQS}MessageNotInflight"),
)

LINES: list[tuple[Any, ...]] = [
    *((asks.condition, *line) for line in dynamodb_lines.CONDITIONS),
    *((asks.update, *line) for line in dynamodb_lines.UPDATES),
    *((asks.put, *line) for line in dynamodb_lines.PUTS),
    *((asks.query, *line) for line in dynamodb_lines.QUERIES),
    *((ask, name, expected) for name, ask, expected in (*TABLE, *BUCKET, *QUEUE)),
]


@pytest.mark.parametrize("line", LINES, ids=[line[1] for line in LINES])
def test_the_answer_is_that_of_aws(services: Services, line: tuple[Any, ...]) -> None:
    ask, name, *arguments, expected = line
    answered = answer(ask, Place(services), *arguments)
    if name in EMULATOR_DIFFERS and not isinstance(services.dynamodb, MemoryDynamoDB):
        known, source = EMULATOR_DIFFERS[name]
        assert answered == known != expected, f"the emulator differs no more, or anew; {source}"
    else:
        assert answered == expected


def test_every_line_has_a_name_of_its_own_and_every_difference_a_line() -> None:
    names = [line[1] for line in LINES]
    assert len(set(names)) == len(names)
    assert EMULATOR_DIFFERS.keys() <= set(names)
