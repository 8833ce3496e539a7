"""I9: pages joined give each row once, in order, and no page is larger than a response may be."""

import gzip
import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.api import pages
from functions.api.pages import BODY_LIMIT_BYTES, Page, Row


class Thing(msgspec.Struct):
    n: int
    text: str


class Head(msgspec.Struct):
    title: str


def read_all(things: list[Thing], *, gzipped: bool, late_after: int = 10**9) -> list[Any]:
    """Follow the cursors from the first page to the last."""
    found: list[Any] = []
    start = 0
    while True:
        rows = (Row(thing, str(thing.n + 1)) for thing in things[start:])
        taken = 0

        def late() -> bool:
            nonlocal taken
            taken += 1
            return taken > late_after

        body = pages.write(Page(Head("things"), "things", rows), gzipped=gzipped, late=late)
        assert len(body) <= BODY_LIMIT_BYTES
        page = json.loads(gzip.decompress(body) if gzipped else body)
        assert page["title"] == "things"
        assert page["things"] or not things
        found += page["things"]
        if "next" not in page:
            return found
        start = int(page["next"])


@pytest.mark.parametrize("gzipped", [False, True])
def test_rows_that_do_not_compress_are_spread_over_pages(gzipped: bool) -> None:
    noise = random.Random(7)  # noqa: S311 - not for secrets
    things = [Thing(n, noise.randbytes(6_000).hex()) for n in range(1_000)]
    found = read_all(things, gzipped=gzipped)
    assert [thing["n"] for thing in found] == list(range(1_000))
    assert found[-1]["text"] == things[-1].text


def test_rows_that_compress_well_share_one_page() -> None:
    things = [Thing(n, "the same text again and again " * 20) for n in range(33_000)]
    rows: Iterator[Row] = (Row(thing, str(thing.n + 1)) for thing in things)
    body = pages.write(Page(None, "things", rows), gzipped=True)
    assert "next" not in json.loads(gzip.decompress(body))


@given(
    sizes=st.lists(st.integers(0, 900_000), max_size=12),
    gzipped=st.booleans(),
    late_after=st.integers(0, 5),
)
def test_every_row_comes_once_in_order(sizes: list[int], gzipped: bool, late_after: int) -> None:
    things = [Thing(n, "你" * (size // 3)) for n, size in enumerate(sizes)]
    found = read_all(things, gzipped=gzipped, late_after=late_after)
    assert [thing["n"] for thing in found] == list(range(len(sizes)))


def test_without_rows_the_rest_decides_about_the_cursor() -> None:
    empty: Iterator[Row] = iter(())
    assert json.loads(pages.write(Page(None, "a", empty), gzipped=False)) == {"a": []}
    body = pages.write(Page(None, "a", iter(()), lambda: "go on"), gzipped=False)
    assert json.loads(body) == {"a": [], "next": "go on"}
