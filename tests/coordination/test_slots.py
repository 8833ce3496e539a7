"""Leases and semaphores: who holds, who waits, who is told that it holds no longer."""

from collections.abc import Callable

import pytest

from runtally.coordination import Busy, Cancelled, Coordinator, LimitsDiffer, RunState, Unavailable
from tests.coordination.virtual import TTL_S, Network, Place

Process = Callable[[], Coordinator]


def test_one_at_a_time_holds_a_lease(workers: list[RunState]) -> None:
    a, b, _ = workers
    with a.lease("index") as lease:
        lease.check()
        with pytest.raises(Busy, match="all of 1 of 'index' are held"):
            b.lease("index").acquire()
        with b.lease("another"), b.semaphore("index", 8).slot():
            pass
    assert not lease.held
    with b.lease("index") as later:
        assert later.fence > lease.fence


def test_a_semaphore_lets_so_many_through(workers: list[RunState]) -> None:
    slots = [worker.semaphore("model", 3).slot() for worker in workers]
    with slots[0], slots[1], slots[2]:
        with pytest.raises(Busy):
            workers[0].semaphore("model", 3).slot().acquire()
        slots[1].release()
        with workers[2].semaphore("model", 3).slot():
            pass
        slots[1].acquire()


def test_workers_agree_on_the_size(workers: list[RunState]) -> None:
    with workers[0].semaphore("model", 3).slot():
        with pytest.raises(LimitsDiffer, match="'model' has the limit 3 in this run, not 8"):
            workers[1].semaphore("model", 8).slot().acquire()
        with pytest.raises(ValueError, match="size is 0: it is 1 to 1000"):
            workers[1].semaphore("model", 0)


def test_an_acquisition_whose_answer_gets_lost_is_one(place: Place) -> None:
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    network.lose("answer", "request")
    with state.semaphore("model", 2).slot() as first, state.semaphore("model", 2).slot() as other:
        assert first.fence < other.fence
        with pytest.raises(Busy):
            state.semaphore("model", 2).slot().acquire()
        network.lose("answer")
    network.lose("answer")
    with state.semaphore("model", 2).slot(), state.semaphore("model", 2).slot():
        pass


def test_a_late_acquisition_takes_nothing(place: Place) -> None:
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    network.lose("request")
    with state.lease("index"):
        pass
    with place.server.client() as client:
        assert client.execute_command(*network.late[0]) == [b"lost", b"overtaken"]
    with state.lease("index"):
        pass


def test_a_slot_that_cannot_be_given_back_does_not_undo_the_work(place: Place) -> None:
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    with state.lease("index") as lease:
        network.lose("all")
    assert not lease.held
    with pytest.raises(Unavailable):
        state.lease("index").acquire()


def test_an_answer_that_comes_too_late_gives_nothing(place: Place) -> None:
    """It may have lapsed by then: nobody is sent to work with it, and it is given back."""
    network = Network()
    state = place.coordinator(network).open(place.run_id)
    network.on_send = lambda: place.clock.move(0.8 * TTL_S)
    with pytest.raises(Busy):
        state.lease("index").acquire()
    network.on_send = None
    with state.lease("index"):
        pass


def test_as_many_as_there_may_be_are_renewed(place: Place, coordinator: Coordinator) -> None:
    state = coordinator.open(place.run_id)
    semaphores = [state.semaphore(name, 600) for name in ("a", "b")]
    slots = [semaphore.slot().acquire() for semaphore in semaphores for _ in range(600)]
    place.clock.move(0.6 * TTL_S)
    assert state.beat()
    place.clock.move(0.6 * TTL_S)
    assert all(slot.held for slot in slots)


def test_waiting_asks_again_until_it_has_waited_enough(
    workers: list[RunState], place: Place
) -> None:
    a, b, _ = workers
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        place.clock.move(seconds)

    place.clock.on_sleep = sleep
    with a.lease("index"), pytest.raises(Busy):
        b.lease("index", wait_s=5).acquire()
    assert 4.5 < sum(waited) < 6  # time also goes on by itself
    assert max(waited) <= 0.5


def test_a_cancellation_ends_the_wait(workers: list[RunState], place: Place) -> None:
    a, b, _ = workers
    place.clock.on_sleep = lambda _: a.cancel("enough")
    with a.lease("index"), pytest.raises(Cancelled):
        b.lease("index", wait_s=60).acquire()
    with b.lease("index"):
        pass


def test_fences_rise_also_after_everything_was_forgotten(
    workers: list[RunState], place: Place, process: Process
) -> None:
    with workers[0].lease("index") as lease:
        pass
    place.server.flush()
    with process().open(place.run_id).lease("index") as later:
        assert later.fence > lease.fence


def test_names_are_checked(workers: list[RunState]) -> None:
    for name in ("", "a b", "a:b", "a\n", "é", "x" * 65):
        with pytest.raises(ValueError, match="a name matches"):
            workers[0].lease(name)
        with pytest.raises(ValueError, match="a name matches"):
            workers[0].semaphore(name, 3)
        with pytest.raises(ValueError, match="a name matches"):
            workers[0].budget(name, 3)
        with pytest.raises(ValueError, match="a name matches"):
            workers[0].heartbeat(name)
        with pytest.raises(ValueError, match="a name matches"):
            workers[0].scratchpad.get(name)
