"""The same done to each of any number of things, several at once, as lazily as they come."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait


def each_done[T, R](
    pool: Executor, at_once: int, act: Callable[[T], R], on: Iterable[T]
) -> Iterator[R]:
    """What `act` makes of each, in the order in which it is done. No more than `at_once` are begun
    and not done, so that there may be any number; raises what `act` raises."""
    begun: set[Future[R]] = set()
    for one in on:
        if len(begun) == at_once:
            done, begun = wait(begun, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
        begun.add(pool.submit(act, one))
    for future in begun:
        yield future.result()


def in_order[T, R](
    pool: Executor, at_once: int, act: Callable[[T], R], on: Iterable[T]
) -> Iterator[R]:
    """As `each_done`, in the order of `on`: what is done waits for what was begun before it."""
    begun: deque[Future[R]] = deque()
    for one in on:
        if len(begun) == at_once:
            yield begun.popleft().result()
        begun.append(pool.submit(act, one))
    while begun:
        yield begun.popleft().result()
