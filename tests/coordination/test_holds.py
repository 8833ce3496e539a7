"""What a holder can know by itself."""

import pytest

from runtally.coordination import NotHeld
from runtally.coordination.holds import BELIEVED, Hold


class Ticks:
    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def hold(ticks: Ticks) -> Hold:
    hold = Hold("index", ticks)
    assert not hold.held
    hold.begun("token")
    return hold


def test_it_is_believed_from_before_it_was_asked_for(hold: Hold, ticks: Ticks) -> None:
    assert not hold.held
    hold.granted(7, 98.0, 10.0)
    hold.check()
    ticks.now_s = 98.0 + 10.0 * BELIEVED
    with pytest.raises(NotHeld, match=r"'index' is held no longer \(fencing number 7\)"):
        hold.check()


def test_an_older_answer_takes_nothing_back(hold: Hold, ticks: Ticks) -> None:
    hold.granted(7, 100.0, 10.0)
    hold.renewed(99.0, 10.0)
    ticks.now_s = 106.9
    hold.check()


def test_what_has_ended_is_not_renewed_by_an_answer_that_was_on_its_way(hold: Hold) -> None:
    hold.granted(7, 100.0, 10.0)
    hold.ended()
    hold.renewed(100.0, 10.0)
    with pytest.raises(NotHeld):
        hold.check()
