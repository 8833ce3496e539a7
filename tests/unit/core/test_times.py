import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core import times


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_no_digit_is_lost_on_the_way_out_and_back(nanoseconds: int) -> None:
    text = times.text_of(nanoseconds)
    assert text.endswith("Z")
    assert len(text.partition(".")[2]) == 10
    assert times.parse(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T00:00:00.1Z", 100_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01t00:00:01z", times.SECOND),
        ("2026-11-30T02:46:01.123456789-05:00", 1_796_024_761_123_456_789),
    ],
)
def test_every_spelling_of_a_time_is_read(text: str, nanoseconds: int) -> None:
    assert times.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-30",
        "2026-11-30T02:46:01",
        "2026-11-30 02:46:01Z",
        "2026-13-30T02:46:01Z",
        "2026-11-30T02:46:01.1234567890Z",
        "1969-12-31T23:59:59Z",
        "2263-01-01T00:00:00Z",
        "２026-11-30T02:46:01Z",
        "2026-11-30T02:46:01Z\n",
        "1796024761",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not "):
        times.parse(text)
