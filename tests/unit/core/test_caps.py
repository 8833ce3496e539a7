"""Text is cut in bytes and never within a character."""

import json

from hypothesis import given
from hypothesis import strategies as st

from functions.core import caps

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS, st.integers(0, 60))
def test_a_cut_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    short = caps.cut(text, limit)
    assert text.startswith(short)
    assert len(short.encode()) <= limit
    if short != text:
        assert len(text[: len(short) + 1].encode()) > limit


@given(st.dictionaries(TEXTS, TEXTS | st.integers() | st.booleans() | st.lists(TEXTS)))
def test_attributes_keep_whole_entries_in_order(attributes: dict[str, object]) -> None:
    for limit in (2, 20, 200):
        text, dropped = caps.cut_attributes(attributes, limit)
        kept = json.loads(text)
        assert len(text.encode()) <= limit
        assert list(kept.items()) == list(attributes.items())[: len(kept)]
        assert dropped == len(attributes) - len(kept)


def test_characters_of_every_width_and_joined_emoji() -> None:
    assert caps.cut("é你🎉", 8) == "é你"
    assert caps.cut("é你🎉", 9) == "é你🎉"
    assert caps.cut("👩‍👩‍👧", 7) == "👩\u200d"
