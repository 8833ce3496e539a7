"""Times as people write and read them."""

import time
from collections.abc import Iterator

import pytest

from functions.core.times import SECOND
from local.moments import ago, elapsed, local_time, moment

NOW = 1_796_006_761_000_000_005
NOW_TEXT = "2026-11-30T02:46:01.000000005Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", NOW_TEXT),
        ("90s", "2026-11-30T02:44:31.000000005Z"),
        ("30m", "2026-11-30T02:16:01.000000005Z"),
        ("2h", "2026-11-30T00:46:01.000000005Z"),
        ("3d", "2026-11-27T02:46:01.000000005Z"),
        ("2w", "2026-11-16T02:46:01.000000005Z"),
        ("999999w", "1970-01-01T00:00:00.000000000Z"),
        ("2026-11-30T03:46:01+01:00", "2026-11-30T02:46:01.000000000Z"),
    ],
)
def test_a_moment_is_written_as_so_long_ago_or_as_a_time(text: str, expected: str) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "2", "h", "-2h", "2.5h", "٢h", "2 h", "2y", "2026-11-30"])
def test_anything_else_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        moment(text, NOW)


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_people_read_their_own_time(in_tokyo: None) -> None:
    assert local_time(NOW_TEXT) == "2026-11-30 11:46:01"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (3_600, "1 h ago"),
        (172_799, "47 h ago"),
        (172_800, "2 d ago"),
    ],
)
def test_how_long_ago_is_told_in_one_unit(seconds: int, expected: str) -> None:
    assert ago(NOW_TEXT, NOW + seconds * SECOND) == expected


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (-SECOND, "0 ms"),
        (3_721_000, "3.72 ms"),
        (1_500_000_000, "1.5 s"),
        (200 * SECOND, "3 min 20 s"),
        (7_260 * SECOND, "2 h 1 min"),
    ],
)
def test_what_runs_has_taken_until_now(nanoseconds: int, expected: str) -> None:
    assert elapsed(NOW_TEXT, None, NOW + nanoseconds) == expected


def test_what_has_ended_took_until_its_end() -> None:
    assert elapsed(NOW_TEXT, "2026-11-30T02:46:03.000000005Z", NOW + 99 * SECOND) == "2 s"
