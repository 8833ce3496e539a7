"""What time does to those who hold something, on a server whose clock is moved by hand.

Needs libfaketime, and a server that starts under it: the Valkey that comes with the project does.
"""

from collections.abc import Callable

import pytest

from runtally.coordination import Busy, Coordinator, NotHeld, RunState
from tests.coordination.server import Server
from tests.coordination.virtual import TTL_S, Place

Process = Callable[[], Coordinator]


@pytest.fixture(scope="module")
def server(stepping_server: Server) -> Server:
    return stepping_server


def test_slots_of_the_dead_come_back(workers: list[RunState], place: Place) -> None:
    dead, other, _ = workers
    semaphore = other.semaphore("model", 2)
    held = [dead.semaphore("model", 2).slot().acquire() for _ in range(2)]
    place.pass_time(0.9 * TTL_S)
    with pytest.raises(Busy):
        semaphore.slot().acquire()
    with semaphore.slot(wait_s=0.2 * TTL_S) as slot:
        assert slot.held
        assert not any(each.held for each in held)


def test_a_heartbeat_keeps_what_is_held(workers: list[RunState], place: Place) -> None:
    a, b, _ = workers
    with a.lease("index") as lease:
        for _ in range(10):
            place.pass_time(0.5 * TTL_S)
            assert a.beat()
            assert lease.held
        with pytest.raises(Busy):
            b.lease("index").acquire()
        place.pass_time(0.5 * TTL_S)
        lease.renew()
        place.pass_time(0.6 * TTL_S)
        lease.check()
    assert not a.beat()


def test_a_stalled_holder_can_do_nothing_any_more(workers: list[RunState], place: Place) -> None:
    """F42: it renews, releases and writes, and all three are refused."""
    stalled, other, third = workers
    lease = stalled.lease("index").acquire()
    place.pass_time(1.1 * TTL_S)
    with other.lease("index") as later:
        assert not lease.held
        with pytest.raises(NotHeld):
            lease.renew()
        stalled.beat()
        with pytest.raises(NotHeld, match="'index' was held no longer"):
            lease.release()
        with pytest.raises(NotHeld):
            lease.fenced_put({"Item": {}})
        assert later.held
        with pytest.raises(Busy):
            third.lease("index").acquire()


@pytest.mark.parametrize("asks", ["renew", "release", "beat"])
def test_one_whose_clock_stood_still_is_told_by_the_server(
    workers: list[RunState], place: Place, asks: str
) -> None:
    """A machine that was suspended: it believes that it holds until it asks."""
    a, b, _ = workers
    lease = a.lease("index").acquire()
    while True:
        place.server.step_clock(TTL_S / 5)
        try:
            later = b.lease("index").acquire()
        except Busy:
            continue
        break
    assert lease.held
    if asks == "beat":
        a.beat()
    else:
        with pytest.raises(NotHeld):
            getattr(lease, asks)()
    with pytest.raises(NotHeld):
        lease.check()
    assert later.held


def stall_and_fail(place: Place) -> None:
    place.pass_time(1.1 * TTL_S)
    raise RuntimeError("an error of the work itself")


def test_losing_a_lease_is_an_error_at_its_end_and_losing_a_slot_is_not(
    workers: list[RunState], place: Place
) -> None:
    a = workers[0]
    with pytest.raises(NotHeld), a.lease("index"):
        place.pass_time(1.1 * TTL_S)
    with pytest.raises(RuntimeError, match="of the work itself"), a.lease("index"):
        stall_and_fail(place)
    with a.semaphore("model", 1).slot() as slot:
        place.pass_time(1.1 * TTL_S)
    assert not slot.held


@pytest.mark.parametrize("step_s", [3_600, -3_600])
def test_a_step_of_the_servers_clock_takes_no_slot_from_who_renews_it(
    workers: list[RunState], place: Place, step_s: int
) -> None:
    a, b, _ = workers
    with a.lease("index") as lease:
        place.pass_time(TTL_S / 6)
        a.beat()
        place.server.step_clock(step_s)
        for _ in range(3):
            with pytest.raises(Busy):
                b.lease("index").acquire()
            place.pass_time(TTL_S / 6)
            a.beat()
            assert lease.held


def test_a_clock_that_was_set_back_delays_nobody(workers: list[RunState], place: Place) -> None:
    dead, other, _ = workers
    dead.lease("index").acquire()
    place.server.step_clock(-3_600)
    place.pass_time(1.2 * TTL_S)
    with other.lease("index"):
        pass


def test_fences_rise_whatever_the_servers_clock_says(
    workers: list[RunState], place: Place, process: Process
) -> None:
    with workers[0].lease("index") as first:
        pass
    place.server.step_clock(-3_600)
    with workers[1].lease("index") as second:
        assert second.fence > first.fence
    place.server.flush()
    again = process().reopen(place.run_id, spent={}, fence=second.fence)
    with again.lease("index") as third, again.lease("another") as fourth:
        assert second.fence < third.fence < fourth.fence


def test_who_was_heard_of_when(place: Place, coordinator: Coordinator, process: Process) -> None:
    state = coordinator.open(place.run_id)
    other = process().join(place.run_id)
    state.heartbeat("planner")
    other.heartbeat("searcher-1")
    place.pass_time(TTL_S)
    other.beat()
    place.pass_time(5)
    silent = state.workers()
    assert set(silent) == {"planner", "searcher-1"}
    assert silent["searcher-1"] == pytest.approx(5, abs=1)
    assert silent["planner"] == pytest.approx(TTL_S + 5, abs=1)
