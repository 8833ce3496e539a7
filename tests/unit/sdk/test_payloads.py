import dataclasses
import datetime as dt
import enum
import json
import math
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import json_text, payloads


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def strictly(text: bytes) -> Any:
    """Parsed as the strictest reader would."""
    value = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    assert not json_text.deeper_than(text)
    assert json_text.minify(text) == text
    return value


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    label: object = None


class Model:
    """As pydantic's models present themselves."""

    def model_dump(self) -> dict[str, object]:
        return {"name": "m", "at": dt.date(2026, 11, 1)}


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Record(msgspec.Struct):
    a: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, 2.5, True, None, "日本"]}, {"a": [1, 2.5, True, None, "日本"]}),
        (math.nan, "NaN"),
        ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
        ({math.nan: 1}, {"NaN": 1}),
        (b"\x00\xff", {"base64": "AP8="}),
        (dt.datetime(2026, 11, 1, tzinfo=dt.UTC), "2026-11-01T00:00:00+00:00"),
        (Decimal("0.10"), "0.10"),
        (Colour.RED, "red"),
        ({Colour.RED: 1, (1, 2): 2}, {"red": 1, "(1, 2)": 2}),
        ({3, 1, 2}, [1, 2, 3]),
        (Path("a/b"), "a/b"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Point(1, Point(2)), {"x": 1, "label": {"x": 2, "label": None}}),
        (Model(), {"name": "m", "at": "2026-11-01"}),
        (Record(1), {"a": 1}),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ([Broken(), 1], ["<Broken>", 1]),
        (Point, "<class 'tests.unit.sdk.test_payloads.Point'>"),
        ({True: 1, None: 2, 1.5: 3}, {"true": 1, "null": 2, "1.5": 3}),
        pytest.param(10**5_000, hex(10**5_000), id="5001 digits"),
    ],
)
def test_what_becomes_of_a_value(value: object, expected: object) -> None:
    assert strictly(payloads.encode(value)) == expected


def test_numbers_stay_as_they_are_written() -> None:
    assert (
        payloads.encode([9007199254740993, 0.1, 1e22, -0.0]) == b"[9007199254740993,0.1,1e+22,-0.0]"
    )


def test_json_text_passes_untouched_but_for_what_parsers_refuse() -> None:
    raw = msgspec.Raw(b'{ "n": 1.10, "big": 9007199254740993, "n": NaN, "s": "\\ud83d" }')
    expected = b'{"n":1.10,"big":9007199254740993,"n":"NaN","s":"\\ufffd"}'
    assert payloads.encode(raw) == expected


def test_raw_text_that_is_no_json_is_kept_as_text() -> None:
    assert strictly(payloads.encode(msgspec.Raw(b'{"a": '))) == '{"a": '


def test_a_circle_is_cut_where_it_closes() -> None:
    circle: dict[str, object] = {"a": [1]}
    circle["self"] = [circle]
    assert strictly(payloads.encode(circle)) == {"a": [1], "self": ["<circular reference>"]}


def test_a_circle_of_objects_is_cut_too() -> None:
    point = Point(1)
    point.label = point
    assert strictly(payloads.encode(point)) == {"x": 1, "label": "<circular reference>"}


def test_what_repeats_without_a_circle_is_written_each_time() -> None:
    shared = [math.nan]
    assert strictly(payloads.encode([shared, shared])) == [["NaN"], ["NaN"]]


@pytest.mark.parametrize("levels", [201, 5_000, 9_000])
def test_deep_nesting_becomes_one_string_that_holds_it(levels: int) -> None:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    assert strictly(payloads.encode(value)) == "[" * levels + "]" * levels


def test_two_hundred_levels_are_not_deep() -> None:
    value: list[object] = []
    for _ in range(199):
        value = [value]
    assert payloads.encode(value) == b"[" * 200 + b"]" * 200


def test_an_object_that_unfolds_without_end_ends() -> None:
    class Endless:
        def model_dump(self) -> list[object]:
            return [Endless()]

    assert strictly(payloads.encode(Endless())).startswith("[[[[")


_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None, exclude_categories=[])),
    st.binary(max_size=20),
    st.decimals(),
    st.datetimes(),
    st.builds(Broken),
    st.sampled_from([Colour.RED, Model(), object, re.compile("a")]),
    st.builds(lambda: 10**4_400),
)
_keys = st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.binary(max_size=3))
anything = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(_keys, inner, max_size=4),
        st.tuples(inner, inner),
        st.builds(Point, st.integers(), inner),
        st.frozensets(st.text(max_size=3), max_size=3),
    ),
    max_leaves=20,
)


@given(anything)
def test_any_object_becomes_strict_json(value: object) -> None:
    strictly(payloads.encode(value))


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)


@given(json_values)
def test_json_in_is_json_out(value: object) -> None:
    assert strictly(payloads.encode(value)) == value


@given(json_values)
def test_the_slow_way_writes_what_the_fast_one_writes(value: object) -> None:
    fast = payloads.encode([value])
    slow = payloads.encode([value, math.nan])  # NaN is what the fast one refuses
    assert slow == fast[:-1] + b',"NaN"]'
