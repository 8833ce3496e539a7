"""DynamoDB's answers line by line, as AWS documents them, for test_conformance.

A line is a name, what is asked, and the answer; a refusal is answered with the error's code.
"""

from typing import Any

type Attributes = dict[str, Any]
"""Names and values in DynamoDB's notation; in requests, also names by their `#` placeholders."""

REFUSED = "ConditionalCheckFailedException"
INVALID = "ValidationException"


def n(number: object) -> Attributes:
    return {"N": str(number)}


def s(text: str) -> Attributes:
    return {"S": text}


def ls(*parts: Attributes) -> Attributes:
    return {"L": list(parts)}


def m(**parts: Attributes) -> Attributes:
    return {"M": parts}


ITEM = {"n": n(5), "s": s("téxt"), "l": ls(n(1), n(2)), "m": m(k=n(5)), "none": ls()}
V = {":v": n(5)}

type Lines = tuple[tuple[Any, ...], ...]

CONDITIONS: Lines = (
    ("there", ITEM, "attribute_exists(#n)", {}, True),
    ("not there", ITEM, "attribute_exists(#gone)", {}, False),
    ("no item, so not there", None, "attribute_not_exists(PK)", {}, True),
    ("an item, so there", ITEM, "attribute_not_exists(PK)", {}, False),
    ("no item to exist", None, "attribute_exists(PK)", {}, False),
    ("numbers compare as numbers", ITEM, "#n < :v", {":v": n(10)}, True),
    ("numbers are equal however written", ITEM, "#n = :v", {":v": n("5.00")}, True),
    ("strings compare as UTF-8 bytes", {"s": s("～")}, "#s < :v", {":v": s("😀")}, True),
    ("missing is not less", ITEM, "#gone < :v", V, False),
    ("missing is not more", ITEM, "#gone >= :v", V, False),
    ("missing is not equal", ITEM, "#gone = :v", V, False),
    ("missing differs", ITEM, "#gone <> :v", V, True),
    ("another type is not less", ITEM, "#s < :v", V, False),
    ("another type differs", ITEM, "#s <> :v", V, True),
    ("size of a list", ITEM, "size(#l) = :v", {":v": n(2)}, True),
    ("size of an empty list", ITEM, "size(#none) < :v", V, True),
    ("size of what is missing", ITEM, "size(#gone) <= :v", V, False),
    ("nested", ITEM, "#m.#k = :v", V, True),
    ("nested in what is missing", ITEM, "attribute_exists(#gone.#k)", {}, False),
    ("nested in a number", ITEM, "attribute_exists(#n.#k)", {}, False),
    ("begins with", ITEM, "begins_with(#s, :v)", {":v": s("té")}, True),
    ("missing begins with nothing", ITEM, "begins_with(#gone, :v)", {":v": s("t")}, False),
    ("NOT", ITEM, "NOT #n = :v", V, False),
    ("AND binds before OR", ITEM, "#n = :v OR #n = :v AND #gone = :v", V, True),
    ("brackets bind first", ITEM, "(#n = :v OR #n = :v) AND #gone = :v", V, False),
    ("a value unused", ITEM, "#n = :v", V | {":w": n(1)}, INVALID),
    ("a name unused", ITEM, "#n = :v", V | {"#w": "w"}, INVALID),
    ("unused, and not met", ITEM, "#n <> :v", V | {":w": n(1)}, INVALID),
    ("a value undefined", ITEM, "#n = :v", {}, INVALID),
    ("a reserved word", ITEM, "status = :v", V, INVALID),
    ("no condition to read", ITEM, "", {}, INVALID),
    ("a condition cut short", ITEM, "#n = :v AND", V, INVALID),
)

APPEND = "SET #a = list_append(#a, :v)"
BEGIN = "SET #a = list_append(if_not_exists(#a, :e), :v)"
AB = {"a": n(1), "b": n(2)}
HALF = s("x" * 204_800)

UPDATES: Lines = (
    ("an update creates the item", None, "SET #a = :v", V, {"a": n(5)}),
    ("ADD to no item", None, "ADD #a :v", V, {"a": n(5)}),
    ("ADD to what is missing", {"b": n(1)}, "ADD #a :v", V, {"a": n(5), "b": n(1)}),
    ("ADD is exact", {"a": n("0.1")}, "ADD #a :v", {":v": n("0.2")}, {"a": n("0.3")}),
    ("ADD keeps 38 digits", {"a": n(10**37)}, "ADD #a :v", {":v": n(1)}, {"a": n(10**37 + 1)}),
    ("ADD to a string", ITEM, "ADD #s :v", V, INVALID),
    ("ADD of a string", {}, "ADD #a :v", {":v": s("1")}, INVALID),
    ("append", {"a": ls(n(1))}, APPEND, {":v": ls(n(2))}, {"a": ls(n(1), n(2))}),
    ("append to what is missing", {}, APPEND, {":v": ls(n(2))}, INVALID),
    ("append to a number", {"a": n(1)}, APPEND, {":v": ls(n(2))}, INVALID),
    ("append, or begin", {}, BEGIN, {":e": ls(), ":v": ls(n(1))}, {"a": ls(n(1))}),
    ("if_not_exists keeps", {"a": n(1)}, "SET #a = if_not_exists(#a, :v)", V, {"a": n(1)}),
    ("if_not_exists sets", {}, "SET #a = if_not_exists(#a, :v)", V, {"a": n(5)}),
    ("SET from what is missing", {}, "SET #a = #gone", {}, INVALID),
    ("SET sees the item as it was", AB, "SET #a = #b, #b = #a", {}, {"a": n(2), "b": n(1)}),
    ("REMOVE", AB, "REMOVE #a", {}, {"b": n(2)}),
    ("REMOVE of what is missing", {"b": n(2)}, "REMOVE #a", {}, {"b": n(2)}),
    ("three clauses", AB, "SET #c = :v REMOVE #a ADD #b :v", V, {"b": n(7), "c": n(5)}),
    ("a clause twice", {}, "SET #a = :v SET #b = :v", V, INVALID),
    ("an attribute twice", {}, "SET #a = :v, #a = :v", V, INVALID),
    ("an attribute in two clauses", {"a": n(1)}, "SET #a = :v REMOVE #a", V, INVALID),
    ("a key changed", {}, "SET #PK = :v", {":v": s("other")}, INVALID),
    ("an update's value unused", {}, "SET #a = :v", V | {":w": n(1)}, INVALID),
    ("an update's reserved word", {}, "SET status = :v", V, INVALID),
    ("an update to 39 digits", {}, "SET #a = :v", {":v": n("1" * 39)}, INVALID),
    ("an update to an empty index key", {}, "SET #GSI1SK = :v", {":v": s("")}, INVALID),
    ("an update over 400 KB", {"a": HALF}, "SET #b = :v", {":v": HALF}, INVALID),
)

# An item's names and values: PK, `conformance-…` (16 bytes with its number), SK, `a`, and `x`.
ROOM = 400 * 1024 - len("PK") - 16 - len("SK") - len("a") - len("x")

OTHER_KINDS = {"b": {"B": b"\0\xff"}, "yes": {"BOOL": True}, "nil": {"NULL": True}}
LONG = {"GSI1PK": s("x" * 2_049), "GSI1SK": s("a")}

PUTS: Lines = (
    ("every kind", ITEM | OTHER_KINDS, True),
    ("an empty string", {"x": s("")}, True),
    ("an empty partition key", {"PK": s("")}, INVALID),
    ("an empty sort key", {"SK": s("")}, INVALID),
    ("a partition key of 2,048 bytes", {"PK": s("x" * 2_048)}, True),
    ("a partition key of 2,049 bytes", {"PK": s("x" * 2_049)}, INVALID),
    ("a sort key of 1,024 bytes", {"SK": s("é" * 512)}, True),
    ("a sort key of 1,025 bytes", {"SK": s("é" * 512 + "x")}, INVALID),
    ("a number as a sort key", {"SK": n(1)}, INVALID),
    ("an empty index key", {"GSI1PK": s("p"), "GSI1SK": s("")}, INVALID),
    ("an empty index partition key", {"GSI1PK": s(""), "GSI1SK": s("a")}, INVALID),
    ("an index partition key of 2,049 bytes", LONG, INVALID),
    ("an index key of 1,025 bytes", {"GSI1PK": s("p"), "GSI1SK": s("x" * 1_025)}, INVALID),
    ("a number as an index key", {"GSI1PK": s("p"), "GSI1SK": n(1)}, INVALID),
    ("400 KB with names", {"x": s("x" * ROOM)}, True),
    ("400 KB and a byte", {"x": s("x" * (ROOM + 1))}, INVALID),
    ("38 digits", {"x": n("9" * 38)}, True),
    ("39 digits", {"x": n("1" * 39)}, INVALID),
    ("39 digits inside a list", {"x": ls(m(k=n("1" * 39)))}, INVALID),
    ("no number", {"x": n("NaN")}, INVALID),
    ("an infinite number", {"x": n("Infinity")}, INVALID),
    ("a number too large", {"x": n("1E+126")}, INVALID),
    ("a number too small", {"x": n("1E-131")}, INVALID),
)

SORT_KEYS = ("10", "9", "a", "a0", "b", "～", "😀")

BACKWARDS = {"ScanIndexForward": False}
FROM_C = {":first": s("c"), ":last": s("d")}
IS_B = {"where": "#label = :label", ":label": s("b")}
KEY_IS_B = {"where": "#SK = :label", ":label": s("b")}
ELSEWHERE = {"ExclusiveStartKey": {"PK": s("other"), "SK": s("a")}}

QUERIES: Lines = (
    ("in order of UTF-8 bytes", {}, (SORT_KEYS, None)),
    ("backwards", BACKWARDS, (SORT_KEYS[::-1], None)),
    ("both bounds are included", {":first": s("9"), ":last": s("b")}, (SORT_KEYS[1:5], None)),
    ("nothing between", FROM_C, ((), None)),
    ("stopped exactly at the limit", {"Limit": 7}, (SORT_KEYS, "😀")),
    ("ended before the limit", {"Limit": 8}, (SORT_KEYS, None)),
    ("after a key that does not exist", {"after": "aa", "Limit": 1}, (("b",), "b")),
    ("before a key that does not exist", BACKWARDS | {"after": "aa", "Limit": 1}, (("a0",), "a0")),
    ("before a key", BACKWARDS | {"after": "9"}, (("10",), None)),
    ("after the last", {"after": "😀"}, ((), None)),
    ("the limit counts before the filter", IS_B | {"Limit": 4}, ((), "a0")),
    ("a filter", IS_B, (("b",), None)),
    ("a filter on a key", KEY_IS_B, INVALID),
    ("a filter on a key, nothing found", KEY_IS_B | FROM_C, INVALID),
    ("a query's value unused", {":w": s("b")}, INVALID),
    ("a query's name unused", {"#w": "w"}, INVALID),
    ("bounds out of order", {":first": s("b"), ":last": s("a")}, INVALID),
    ("an empty bound", {":first": s("")}, INVALID),
    ("a limit of none", {"Limit": 0}, INVALID),
    ("after a key of another partition", ELSEWHERE, INVALID),
    ("an index, strongly consistent", {"index": "GSI1", "ConsistentRead": True}, INVALID),
)
