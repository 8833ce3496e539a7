"""An invocation's item reads back, and stays an item whatever the answer holds (F43)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters.attributes import from_attributes, to_attributes
from functions.core import caps, invocations, keys
from functions.core.invocations import Invocation, InvocationStatus, Settlement
from functions.core.keys import InvocationRef
from runtally.wire import InvocationEnded
from tests.fakes.dynamodb import item_size

TENANTS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", fullmatch=True)
REFS = st.builds(InvocationRef, TENANTS, IDS)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
TIMES = st.integers(0, 2**63 - 1)
SETTLEMENTS = st.builds(
    Settlement,
    status=st.sampled_from([s for s in InvocationStatus if s is not InvocationStatus.PENDING]),
    ended_at=TIMES,
    digest=st.none() | TEXTS,
    result=st.none() | TEXTS,
    result_bytes=st.none() | TIMES,
    result_object=st.none() | TEXTS,
    reason=st.none() | TEXTS,
    error=st.none() | TEXTS,
)
PENDING = Invocation(InvocationRef("acme", "i"), "research", 1, 2, "0" * 64, 3)


def item_of(settled: Settlement, invocation: Invocation = PENDING) -> dict[str, Any]:
    item = invocations.invocation_item(invocation) | invocations.settlement_attributes(settled)
    return from_attributes(to_attributes(item))


@given(REFS, TEXTS, st.tuples(TIMES, TIMES, TIMES), TIMES)
def test_a_new_invocation_reads_back(
    ref: InvocationRef, entry: str, times: tuple[int, int, int], now: int
) -> None:
    created_at, deadline_at, expires_at = times
    invocation = Invocation(ref, entry, created_at, deadline_at, "d", expires_at)
    item = from_attributes(to_attributes(invocations.invocation_item(invocation)))
    assert invocations.parse_invocation(item) == invocation
    assert invocation.status is InvocationStatus.PENDING
    assert invocation.awaits_answer(now) == (now < deadline_at)


@given(SETTLEMENTS)
def test_how_it_ended_reads_back(settled: Settlement) -> None:
    invocation = invocations.parse_invocation(item_of(settled))
    assert invocation.settled == settled
    assert invocation.status is settled.status
    assert not invocation.awaits_answer(0)


@given(REFS, REFS)
def test_no_invocation_has_the_key_or_the_object_of_another(
    one: InvocationRef, other: InvocationRef
) -> None:
    item, object_ = keys.invocation_item(one), keys.result_object(one, "0" * 64)
    assert keys.parse_invocation_item(item.partition) == one
    assert (item == keys.invocation_item(other)) == (one == other)
    assert (object_ == keys.result_object(other, "0" * 64)) == (one == other)
    assert object_.startswith(f"invocations/{one.tenant_id}/{one.invocation_id}/")


@pytest.mark.parametrize("partition", ["", "INVOCATION#", "INVOCATION#acme", "TENANT#a#b", "a#b"])
def test_what_is_no_key_of_an_invocation_is_refused(partition: str) -> None:
    with pytest.raises(ValueError, match="not the partition key"):
        keys.parse_invocation_item(partition)


@pytest.mark.parametrize("character", ["x", "é", "你", "🎉", "\x00", '"', "\u0301"])
def test_the_largest_answer_of_the_longest_ids_fits_an_item(character: str) -> None:
    ref = InvocationRef("t" * 64, "i" * 128)
    event = InvocationEnded("i", "failed", character * 900_000, character * 900_000)
    key = keys.result_object(ref, "0" * 64)
    settled = invocations.answered(event, "d" * 16, 2**63 - 1, key)
    invocation = Invocation(ref, "r" * 32, 2**63 - 1, 2**63 - 1, "0" * 64, 2**63 - 1)
    item = item_of(settled, invocation) | {"sent_at": 2**63 - 1}
    assert caps.INVOCATION_RESULT - 4 < len(item["result"].encode()) <= caps.INVOCATION_RESULT
    assert len(item["error"].encode()) <= caps.RUN_ERROR
    assert item_size(to_attributes(item)) < 310_000
    assert item["result_truncated"] is True


def test_an_invocation_is_gone_when_its_time_is_over_and_not_a_nanosecond_before() -> None:
    assert not PENDING.is_gone(3 * 10**9 - 1)
    assert PENDING.is_gone(3 * 10**9)
