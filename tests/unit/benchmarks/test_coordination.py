"""What `coordination` makes of the server's counts and of the times of its clients."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from benchmarks import coordination
from benchmarks.coordination.clients import Round, Timed, _joined
from benchmarks.coordination.counting import Counts, difference
from benchmarks.missing import NotHere
from local.valkey_server import NoServer

COUNTED: dict[str, Any] = {"requests": 1, "server_us": 2.0, "bytes_in": 200, "bytes_out": 100}


@pytest.mark.parametrize(
    ("change", "units"),
    [
        ({}, 1.0),
        ({"requests": 2}, 2.0),
        ({"server_us": 30.0}, 10.0),
        ({"bytes_in": 2_048, "bytes_out": 1_024}, 3.0),
        ({"server_us": 30.0, "bytes_in": 2_048}, 10.0),  # the larger one, not both
    ],
)
def test_ecpus_are_the_largest_of_requests_time_and_kilobytes(
    change: dict[str, float], units: float
) -> None:
    assert coordination.ecpus({**COUNTED, **change}) == units


def test_what_asking_for_counts_takes_is_not_the_calls() -> None:
    silent = Counts(1_000, 50_000, {"evalsha": 3, "hget": 9}, {"evalsha": 30, "hget": 4})
    before = Counts(1_070, 58_000, {"evalsha": 3, "hget": 9}, {"evalsha": 30, "hget": 4})
    after = Counts(
        1_070 + 70 + 10 * 200,
        58_000 + 8_000 + 10 * 60,
        {"evalsha": 13, "hget": 29, "hset": 10},
        {"evalsha": 430, "hget": 12, "hset": 5},
    )
    assert difference(silent, before, after, 10) == {
        "requests": 1,
        "bytes_in": 200,
        "bytes_out": 60,
        "calls": 3,
        "within": {"hget": 2.0, "hset": 1.0},
        "server_us": 40.0,
    }


def test_bare_calls_are_requests_themselves() -> None:
    before = Counts(0, 0, {"set": 1}, {"set": 1})
    after = Counts(0, 0, {"set": 11, "del": 10}, {"set": 11, "del": 20})
    found = difference(before, before, after, 10)
    assert (found["requests"], found["calls"], found["server_us"]) == (2, 0, 3.0)


def test_calls_a_second_are_those_of_all_clients_from_the_first_to_the_last() -> None:
    one = [Round(0, 1_000_000_000, [5] * 10), Round(0, 500_000_000, [5] * 10)]
    other = [Round(500_000_000, 2_000_000_000, [7] * 10), Round(0, 1_000_000_000, [7] * 10)]
    timed = _joined("spend", [one, other])
    assert timed.rates == [10.0, 20.0]
    assert sorted(timed.calls) == [5] * 20 + [7] * 20


@pytest.mark.parametrize(("percent", "us"), [(50, 50.0), (99, 99.0), (100, 100.0)])
def test_a_percentile_is_a_nearest_rank_in_microseconds(percent: int, us: float) -> None:
    timed = Timed("spend", [n * 1_000 for n in range(100, 0, -1)], [])
    assert timed.percentile(percent) == us


def test_ratios_are_of_the_same_rounds() -> None:
    ours, bare = Timed("spend", [1_000], [10.0, 1.0]), Timed("HINCRBY", [1_000], [40.0, 4.0])
    (found,) = coordination._compared([(ours, bare)])
    assert found["times_bare"] == 4.0
    assert found["bare"]["name"] == "HINCRBY"


def test_without_a_server_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> AbstractContextManager[str]:
        raise NoServer("Unsupported operating system: plan9")

    monkeypatch.setattr(coordination, "embedded", none)
    with pytest.raises(NotHere, match="plan9"):
        coordination.measure()


def test_the_table_says_all_that_was_measured() -> None:
    timed = Timed("spend", [1_000_000], [1_234.0])
    compared = coordination._compared([(timed, Timed("HINCRBY", [500_000], [2_468.0]))])
    counted = {"name": "spend", **COUNTED, "calls": 9, "ecpus": 1.0, "usd_per_million": 0.0023}
    shown = coordination.table({"clients": {"1": compared}, "counted": [counted]})
    assert "1,234/s" in shown
    assert "2.0 times HINCRBY" in shown
    assert "$0.0023" in shown
