from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.api import cursors
from functions.core.errors import Rejected
from runtally.wire import Nanoseconds

POSITIONS = st.lists(st.one_of(st.integers(0, 2**63), st.text()), min_size=1, max_size=3)


@given(st.text(), POSITIONS)
def test_a_cursor_leads_back_to_its_position(scope: str, position: list[int | str]) -> None:
    cursor = cursors.encode(scope, *position)
    assert cursor.isascii()
    assert cursors.decode(scope, cursor, tuple[Any, ...]) == tuple(position)


@given(st.data(), POSITIONS)
def test_a_cursor_with_one_character_changed_is_refused(
    data: st.DataObject, position: list[int | str]
) -> None:
    cursor = cursors.encode("runs of acme", *position)
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.characters().filter(lambda c: c != cursor[at]))
    with pytest.raises(Rejected, match="cursor"):
        cursors.decode("runs of acme", cursor[:at] + other + cursor[at + 1 :], tuple[Any, ...])


@pytest.mark.parametrize("cursor", ["", "=", "AAAA", "你好", "a" * 100_000, "AAAAAAAA\n"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Rejected) as caught:
        cursors.decode("runs of acme", cursor, tuple[Any, ...])
    assert (caught.value.reason, caught.value.field) == ("invalid_cursor", "cursor")


def test_a_cursor_belongs_to_one_list() -> None:
    cursor = cursors.encode("runs of acme", 17)
    with pytest.raises(Rejected):
        cursors.decode("runs of globex", cursor, tuple[int])


@pytest.mark.parametrize("position", [(), ("a",), (1, 2), (None,), (10**30,), (1.5,), ([],)])
def test_a_forged_cursor_holds_a_position_or_is_refused(position: tuple[Any, ...]) -> None:
    """Whoever knows how the check is made gets no further than a wrong place in their list."""
    forged = cursors.encode("runs of acme", *position)
    with pytest.raises(Rejected):
        cursors.decode("runs of acme", forged, tuple[Nanoseconds])
