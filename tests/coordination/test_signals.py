"""Cancellation and heartbeats."""

import threading
from collections.abc import Callable

import pytest

from runtally.coordination import Cancelled, Coordinator
from tests.coordination.server import Server
from tests.coordination.virtual import Place, new_run_id

Process = Callable[[], Coordinator]


def test_one_asks_all_others_to_stop(
    place: Place, coordinator: Coordinator, process: Process
) -> None:
    state = coordinator.open(place.run_id)
    other = process().join(place.run_id)
    assert other.cancelled() is None
    other.raise_if_cancelled()
    state.cancel("over budget: 你好")
    other.cancel("a later reason")
    assert state.cancelled() == other.cancelled() == "over budget: 你好"
    with pytest.raises(Cancelled, match="over budget") as stop:
        other.raise_if_cancelled()
    assert stop.value.reason == "over budget: 你好"


def test_any_answer_tells_of_a_cancellation(
    place: Place, coordinator: Coordinator, process: Process
) -> None:
    state = coordinator.open(place.run_id)
    other = process().join(place.run_id)
    state.cancel("enough")
    other.raise_if_cancelled()  # has heard of nothing yet
    other.budget("cost", 10).spend(1)
    with pytest.raises(Cancelled):
        other.raise_if_cancelled()
    with pytest.raises(Cancelled):
        process().join(place.run_id).raise_if_cancelled()


@pytest.mark.parametrize("reason", ["", "x" * 1025])
def test_a_reason_says_something(place: Place, coordinator: Coordinator, reason: str) -> None:
    with pytest.raises(ValueError, match="a reason has 1 to 1024 characters"):
        coordinator.open(place.run_id).cancel(reason)


def test_in_the_background_hearts_beat_by_themselves(server: Server) -> None:
    """On the real clock, with a short time to live: what is held outlives it by far."""
    with Coordinator(tenant_id="acme", url=server.url, ttl_s=3.0) as coordinator:
        run_id = new_run_id()
        with coordinator.open(run_id) as state, coordinator.join(run_id) as other:
            state.heartbeat("planner")
            with state.lease("index") as lease:
                other.cancel("enough")
                deadline = threading.Event()
                deadline.wait(4.0)
                assert lease.held
                assert other.workers()["planner"] < 3.0
                with pytest.raises(Cancelled):
                    state.raise_if_cancelled()
