import decimal
import json
import logging
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import fields, wire
from runtally.fields import Fields

REQUIRED = {
    "step_id": "1795984949123456789-9f3a1c02",
    "kind": "agent",
    "status": "succeeded",
    "started_at": 1,
    "ended_at": 2,
}


def step(**given: object) -> wire.Step:
    recorded = Fields("step of the test")
    for name, value in given.items():
        recorded.put(name, value)
    return recorded.event(wire.Step, **REQUIRED)


@pytest.mark.parametrize(
    ("cost", "written"),
    [
        (Decimal("0.0012"), "0.0012"),
        ("1e-5", "0.00001"),
        (3, "3"),
        (0, "0"),
        (Decimal("-0"), "0"),
        (Decimal("0E+30"), "0"),
        (Decimal("1E+3"), "1000"),
        ("999999999999.999999999999999999", "999999999999.999999999999999999"),
        (0.1, "0.1"),
        ("  2.50 ", "2.5"),
    ],
)
def test_an_amount_is_written_out(cost: object, written: str) -> None:
    recorded = step(cost_usd=cost)
    assert recorded.cost_usd == written
    assert recorded.attributes is None


@pytest.mark.parametrize(
    "cost", [-1, "abc", math.nan, "NaN", Decimal("sNaN"), math.inf, 10**12, True, [1], "1e999999"]
)
def test_an_amount_that_is_none_costs_the_field_and_not_the_step(
    cost: object, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = step(cost_usd=cost, model="m")
    assert (recorded.cost_usd, recorded.model) == (None, "m")
    assert recorded.attributes == {"runtally.dropped": ["cost_usd"]}
    assert "cost_usd" in caplog.text


@pytest.mark.parametrize(
    ("cost", "written"),
    [
        ("0.1234567890123456785", "0.123456789012345678"),
        ("0.1234567890123456775", "0.123456789012345678"),
        ("1e-19", "0"),
    ],
)
def test_more_than_eighteen_decimals_are_rounded_half_even_and_noted(
    cost: str, written: str
) -> None:
    recorded = step(cost_usd=cost)
    assert Decimal(recorded.cost_usd or "") == Decimal(written)
    assert recorded.attributes == {"runtally.rounded": ["cost_usd"]}


def test_rounding_up_to_the_limit_drops_the_amount() -> None:
    assert step(cost_usd="999999999999.9999999999999999999").cost_usd is None


@given(st.decimals(min_value=0, max_value=10**12 - 1, places=18))
def test_any_amount_in_range_is_exact(cost: Decimal) -> None:
    with decimal.localcontext(prec=6):  # the agent's own context must not matter
        assert Decimal(step(cost_usd=cost).cost_usd or "") == cost


def test_a_float_is_taken_as_written_with_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "_float_warned", False)
    assert step(cost_usd=0.1 + 0.2).cost_usd == "0.30000000000000004"
    assert step(cost_usd=0.25).cost_usd == "0.25"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_tokens", -1),
        ("input_tokens", 1.5),
        ("input_tokens", True),
        ("output_tokens", 10**13),
        ("cached_tokens", "many"),
        ("kind", "Not A Kind"),
        ("parent_id", "#/.."),
        ("attributes", 5),
    ],
)
def test_a_field_that_the_wire_refuses_is_dropped_and_named(name: str, value: object) -> None:
    recorded = step(**{"agent": "a", name: value})
    assert recorded.agent == "a"
    assert recorded.kind == "agent"
    assert recorded.attributes == {"runtally.dropped": [name]}


def test_attributes_are_scalars_and_lists_of_them() -> None:
    given_ = {
        "s": "x\ud800",
        "n": math.nan,
        "big": 2**70,
        "list": [1, {"a": 1}, math.inf],
        "map": {"a": [1]},
        3: b"\x00",
        "none": None,
        "money": Decimal("1.10"),
    }
    assert step(attributes=given_).attributes == {
        "s": "x\ufffd",
        "n": "NaN",
        "big": str(2**70),
        "list": [1, '{"a":1}', "Infinity"],
        "map": '{"a":[1]}',
        "3": '{"base64":"AA=="}',
        "none": None,
        "money": "1.10",
    }


def test_attributes_add_up_and_the_last_of_a_name_counts() -> None:
    recorded = Fields("step")
    recorded.put("attributes", {"a": 1, "b": 1})
    recorded.put("attributes", {"b": 2})
    event = recorded.event(wire.Step, **REQUIRED)
    assert event.attributes == {"a": 1, "b": 2}


class Hostile(Mapping[str, object]):
    def _fail(self, *_: object) -> NoReturn:
        raise RuntimeError("for the test")

    __str__ = __repr__ = __len__ = __getitem__ = _fail

    def __iter__(self) -> Iterator[str]:
        self._fail()


_names = st.sampled_from(sorted(wire.Step.__struct_fields__))
_values = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=[])),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.binary(),
    st.builds(Hostile),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.one_of(st.floats(), st.lists(st.text()), st.integers())),
)


@given(st.dictionaries(_names.filter(lambda n: n not in REQUIRED and n != "payload"), _values))
def test_whatever_is_put_in_the_event_is_valid(given_: dict[str, object]) -> None:
    line = wire.encode_event(step(**given_))
    json.loads(line)
    wire.decode_event(line, "")
