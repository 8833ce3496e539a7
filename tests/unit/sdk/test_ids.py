import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from runtally import ids, wire
from runtally.ids import IdClock


def test_an_id_is_what_the_wire_format_asks_for() -> None:
    made = ids.new_id()
    assert msgspec.convert(made, wire.StepId) == made
    assert abs(int(made[:19]) - time.time_ns()) < 60 * 10**9


def test_threads_that_ask_at_once_get_increasing_times_without_repetition() -> None:
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [ids.new_id()[:19] for _ in range(500)], range(8)))
    for batch in batches:
        assert batch == sorted(batch)
    assert len({time for batch in batches for time in batch}) == 4_000


def test_a_clock_that_stands_still_or_is_set_back_does_not_stop_ids_from_increasing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([10**18 + 5, 10**18 + 5, 10**18 - 3_600 * 10**9, 10**18 + 100])
    monkeypatch.setattr(time, "time_ns", lambda: next(readings))
    clock = IdClock()
    made = [int(clock.new_id()[:19]) - 10**18 for _ in range(4)]
    assert made == [5, 6, 7, 100]


def _suffixes() -> list[str]:
    return [ids.new_id()[20:] for _ in range(50)]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_repeat_its_parent() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        children = [pool.apply_async(_suffixes) for _ in range(4)]
        made = [suffix for child in children for suffix in child.get(10)] + _suffixes()
    assert len(set(made)) == len(made)
