"""Marks sort as the stream does, whatever the length of its numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core.changes import mark

LABEL = "2026-01-02T03:04:05.678"
NUMBERS = st.integers(0, 10**40 - 1)


@given(NUMBERS, NUMBERS)
def test_marks_sort_as_sequence_numbers_do(one: int, other: int) -> None:
    assert (mark(LABEL, str(one)) < mark(LABEL, str(other))) == (one < other)
    assert mark(LABEL, f"{one:040d}") == mark(LABEL, str(one))


@given(NUMBERS, NUMBERS)
def test_a_later_stream_comes_after_all_of_an_earlier_one(one: int, other: int) -> None:
    assert mark(LABEL, str(one)) < mark("2026-01-02T03:04:05.679", str(other))


def test_a_mark_is_23_bytes() -> None:
    assert len(mark(LABEL, "9" * 40)) == 23


@pytest.mark.parametrize(("label", "number"), [("", "1"), ("x", "1"), (LABEL, ""), (LABEL, "a")])
def test_what_is_neither_label_nor_number_is_refused(label: str, number: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        mark(label, number)
