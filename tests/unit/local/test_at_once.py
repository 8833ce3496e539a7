"""Several at once, of any number: how many are begun, and in which order they come out."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from local.at_once import each_done, in_order

AT_ONCE: Final = 3


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield pool


def test_each_comes_out_once_it_is_done(pool: ThreadPoolExecutor) -> None:
    came_out = threading.Event()

    def act(n: int) -> int:
        assert n or came_out.wait(timeout=30)
        return n

    done: list[int] = []
    for n in each_done(pool, AT_ONCE, act, range(9)):
        done.append(n)
        came_out.set()
    assert sorted(done) == list(range(9))
    assert done[0] != 0


def test_each_comes_out_in_order(pool: ThreadPoolExecutor) -> None:
    second = threading.Event()

    def act(n: int) -> int:
        assert n or second.wait(timeout=30)
        if n == 1:
            second.set()
        return n

    assert list(in_order(pool, AT_ONCE, act, range(9))) == list(range(9))


@pytest.mark.parametrize("some", [each_done, in_order])
def test_no_more_are_begun_than_may_be_under_way(pool: ThreadPoolExecutor, some: object) -> None:
    begun: list[int] = []

    def numbers() -> Iterator[int]:
        for n in range(100):
            begun.append(n)
            yield n

    come_out = 0
    for _ in some(pool, AT_ONCE, lambda n: n, numbers()):  # type: ignore[operator]
        come_out += 1
        assert len(begun) <= come_out + AT_ONCE + (AT_ONCE - 1)
    assert come_out == 100


@pytest.mark.parametrize("some", [each_done, in_order])
def test_what_fails_is_raised(pool: ThreadPoolExecutor, some: object) -> None:
    def fail(n: int) -> int:
        if n == 5:
            raise KeyError(n)
        return n

    with pytest.raises(KeyError):
        list(some(pool, AT_ONCE, fail, range(9)))  # type: ignore[operator]
