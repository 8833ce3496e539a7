"""F24, F25: numbers are the same on the way in and out, or refused; never different."""

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters.attributes import from_attributes, to_attributes

NUMBERS = st.integers(-(10**37), 10**37) | st.decimals(
    allow_nan=False, allow_infinity=False, places=18, min_value=-(10**15), max_value=10**15
)
VALUES = st.recursive(
    st.text() | st.booleans() | st.none() | NUMBERS | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=5))
def test_what_is_written_is_read_again_and_boto3_agrees(values: dict[str, Any]) -> None:
    written = to_attributes(values)
    assert from_attributes(written) == values
    serialize: Any = TypeSerializer().serialize
    deserialize: Any = TypeDeserializer().deserialize
    for name, value in values.items():
        assert deserialize(written[name]) == deserialize(serialize(value))


@pytest.mark.parametrize(
    "written",
    ["0", "-0", "0.1", "1E-20", "9" * 38, "1" + "0" * 38, "1E+40", "-" + "1" * 38, "1." + "0" * 45],
)
def test_a_number_that_another_sdk_wrote_is_read_as_it_is(written: str) -> None:
    assert from_attributes({"n": {"N": written}}) == {"n": Decimal(written)}


@pytest.mark.parametrize(
    "value",
    [0.1, float("nan"), {1, 2}, (1,), object(), bytearray(b"x"), [0.5], {"a": 0.5}]
    + [Decimal(text) for text in ("NaN", "sNaN", "Infinity", "9" * 39, "0." + "1" * 39)],
    ids=lambda value: type(value).__name__,
)
def test_what_no_attribute_holds_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ArithmeticError)):
        to_attributes({"a": value})


def test_38_digits_with_trailing_zeros_are_38_digits() -> None:
    amount = Decimal("1." + "2" * 37 + "000")
    assert Decimal(to_attributes({"a": amount})["a"]["N"]) == amount
