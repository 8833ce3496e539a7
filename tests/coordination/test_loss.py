"""Servers that die, stand still, forget, or go back in time: an error with a name, or the fallback.

F42: whatever happens to Valkey, what a pipeline recorded is the same (test_pipeline.py).
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import valkey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtally.coordination import (
    BudgetExceeded,
    Busy,
    CoordinationError,
    Coordinator,
    NotHeld,
    RunState,
    StateLost,
    Unavailable,
)
from tests.coordination.server import Program, Server, programs
from tests.coordination.virtual import TTL_S, Network, Place, new_run_id

Process = Callable[[], Coordinator]


@pytest.fixture(params=programs(), ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    program: Program = request.param
    return program


@pytest.fixture
def server(program: Program) -> Iterator[Server]:
    """One for each test, which may spoil it."""
    with Server(program) as server:
        yield server


def everything(state: RunState) -> list[Callable[[], object]]:
    """All that can be asked for, each of which needs the server."""
    return [
        lambda: state.budget("cost", 100).spend(1),
        lambda: state.budget("cost", 100).reserve(1),
        lambda: state.budget("cost", 100).left(),
        lambda: state.semaphore("model", 8).slot().acquire(),
        lambda: state.lease("index").acquire(),
        lambda: state.scratchpad.get("plan"),
        lambda: state.scratchpad.set("plan", "x"),
        lambda: state.scratchpad.append("plan", "x"),
        lambda: state.scratchpad.compare_and_set("plan", "x", version=None),
        lambda: state.scratchpad.delete("plan"),
        lambda: state.cancel("enough"),
        state.cancelled,
        lambda: state.heartbeat("planner"),
        state.workers,
    ]


def test_a_server_that_died_is_an_error_for_whatever_is_asked(
    coordinator: Coordinator, place: Place
) -> None:
    state = coordinator.open(place.run_id)
    place.server.kill()
    for ask in everything(state):
        with pytest.raises(Unavailable, match="Valkey does not answer"):
            ask()
    with pytest.raises(Unavailable):
        coordinator.join(place.run_id)
    with pytest.raises(Unavailable):
        coordinator.open(place.run_id)


@pytest.mark.parametrize("loss", ["flush", "restart"])
def test_what_vanished_is_not_taken_for_new(
    coordinator: Coordinator, process: Process, place: Place, loss: str
) -> None:
    state = coordinator.open(place.run_id)
    state.budget("cost", 100).spend(90)
    lease = state.lease("index").acquire()
    if loss == "flush":
        place.server.flush()
    else:
        place.server.kill()
        place.server.start()
    for ask in everything(state):
        with pytest.raises(StateLost, match="its state vanished"):
            ask()
    with pytest.raises(StateLost, match="no such run is open"):
        process().join(place.run_id)
    with pytest.raises(NotHeld):
        lease.renew()


def test_a_lost_run_is_reopened_by_one_who_knows_what_was_spent(
    coordinator: Coordinator, process: Process, place: Place
) -> None:
    state = coordinator.open(place.run_id)
    state.budget("cost", 100).spend(90)
    held = state.semaphore("model", 1).slot().acquire()
    place.server.flush()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        place.clock.move(seconds)

    place.clock.on_sleep = sleep
    again = process().reopen(place.run_id, spent={"cost": 90})
    assert slept == [TTL_S]
    assert not held.held, "whoever held a slot knows by now"
    assert again.budget("cost", 100).left() == 10
    with pytest.raises(BudgetExceeded):
        again.budget("cost", 100).spend(11)
    with pytest.raises(StateLost):
        state.budget("cost", 100).spend(1)
    late = process().reopen(place.run_id, spent={"cost": 5})
    assert late.budget("cost", 100).left() == 10, "the first who reopened it counts"
    with again.semaphore("model", 1).slot():
        pass


def test_reopening_waits_for_the_holders_of_the_lost_run(place: Place) -> None:
    held = place.coordinator(ttl_s=60).open(place.run_id).semaphore("model", 1).slot().acquire()
    place.server.flush()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        place.clock.move(seconds)

    place.clock.on_sleep = sleep
    place.coordinator().reopen(place.run_id, spent={}, ttl_s=60)
    assert slept == [60]
    assert not held.held


def test_one_who_comes_late_joins_what_was_opened(
    coordinator: Coordinator, process: Process, place: Place
) -> None:
    coordinator.open(place.run_id).budget("cost", 100).spend(40)
    assert process().open(place.run_id).budget("cost", 100).left() == 60
    assert process().join(place.run_id).budget("cost", 100).left() == 60


def lose(place: Place, happens: Callable[[], object]) -> None:
    """As a replica has it that got nothing of what happens: the very hash, as it was before."""
    key = f"runtally:{{acme/{place.run_id}}}"
    with place.server.client() as client:
        replica = client.dump(key)
        happens()
        client.restore(key, 0, replica, replace=True)


@pytest.fixture
def gone_back(place: Place) -> Callable[[Callable[[], object]], None]:
    return partial(lose, place)


def test_a_failover_that_lost_the_last_writes_is_found_and_ends_it(
    coordinator: Coordinator,
    process: Process,
    place: Place,
    gone_back: Callable[[Callable[[], object]], None],
) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 100)
    theirs = process().join(place.run_id).budget("cost", 100)
    budget.spend(10)
    theirs.spend(10)
    gone_back(lambda: budget.spend(70))
    asks: list[Callable[[], object]] = [
        lambda: budget.spend(1),
        lambda: theirs.spend(1),
        theirs.spent,
    ]
    for ask in asks:
        with pytest.raises(StateLost, match="its state went back"):
            ask()


def test_whoever_only_asks_finds_it_as_well(
    coordinator: Coordinator, place: Place, gone_back: Callable[[Callable[[], object]], None]
) -> None:
    state = coordinator.open(place.run_id)
    gone_back(lambda: [state.cancelled() for _ in range(3)])
    with pytest.raises(StateLost, match="its state went back"):
        state.workers()


def test_also_when_others_have_gone_on_since(
    coordinator: Coordinator,
    process: Process,
    place: Place,
    gone_back: Callable[[Callable[[], object]], None],
) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 100)
    theirs = process().join(place.run_id).budget("cost", 100)
    budget.spend(10)
    gone_back(lambda: budget.spend(1))
    for _ in range(10):
        theirs.spend(1)
    with pytest.raises(StateLost, match="its state went back"):
        budget.spend(1)


def test_also_when_there_was_no_answer_in_between(
    process: Process, place: Place, gone_back: Callable[[Callable[[], object]], None]
) -> None:
    """As it is while a server fails over."""
    network = Network()
    budget = place.coordinator(network).open(place.run_id).budget("cost", 100)
    theirs = process().join(place.run_id).budget("cost", 100)
    budget.spend(10)
    gone_back(lambda: budget.spend(60))
    network.lose("all")
    with pytest.raises(Unavailable):
        budget.spend(1)
    network.heal()
    for _ in range(10):
        theirs.spend(1)
    with pytest.raises(StateLost, match="its state went back"):
        budget.spend(60)


def test_what_went_back_is_reopened_and_not_joined(
    coordinator: Coordinator,
    process: Process,
    place: Place,
    gone_back: Callable[[Callable[[], object]], None],
) -> None:
    budget = coordinator.open(place.run_id).budget("cost", 100)
    budget.spend(10)
    gone_back(lambda: budget.spend(60))
    with pytest.raises(StateLost):
        budget.spend(1)
    for enter in (process().join, process().open):
        with pytest.raises(StateLost, match="its state went back"):
            enter(place.run_id)
    place.clock.on_sleep = place.clock.move
    process().reopen(place.run_id, spent={"cost": 70})
    assert process().join(place.run_id).budget("cost", 100).left() == 30


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # of runs of their own
@given(st.data())
def test_whoever_was_told_of_a_lost_spend_finds_it(server: Server, data: st.DataObject) -> None:
    """Whatever the others do before and since, by its own next spend at the latest."""
    place = Place(server)
    place.run_id = new_run_id()
    place.coordinator().open(place.run_id)
    workers = [place.coordinator().join(place.run_id).budget("c", 10**6) for _ in range(3)]
    some = st.lists(st.sampled_from(workers), max_size=6)
    for worker in data.draw(some):
        worker.spend(1)
    lost = data.draw(some.filter(bool))
    lose(place, lambda: [worker.spend(1) for worker in lost])
    for worker in data.draw(some):
        if worker not in lost:
            worker.spend(1)
    with pytest.raises(StateLost, match="its state went back"):
        data.draw(st.sampled_from(lost)).spend(1)


def test_a_server_that_stood_still_counts_once_what_it_was_asked(place: Place) -> None:
    """The requests that were given up wait in its buffers, and are read when it goes on."""
    state = place.coordinator(timeout_s=0.2).open(place.run_id)
    budget = state.budget("cost", 100)
    budget.spend(10)
    place.server.pause()
    with pytest.raises(Unavailable):
        budget.spend(20)
    place.server.resume()
    assert budget.spend(30) is not None
    assert budget.spent() in {40, 60}


def test_all_of_a_run_is_under_one_time_to_live(coordinator: Coordinator, place: Place) -> None:
    state = coordinator.open(place.run_id)
    for ask in everything(state):
        ask()
    with place.server.client() as client:
        keys = client.keys("*")
        assert keys == [f"runtally:{{acme/{place.run_id}}}".encode()]
        client.pexpire(keys[0], 5_000)
        state.cancelled()
        assert 86_000_000 < client.pttl(keys[0]) <= 86_400_000


def test_evicted_is_as_good_as_flushed(program: Program) -> None:
    """ElastiCache Serverless evicts by volatile-lru at its limit: a run as a whole, or not."""
    with Server(program, "--maxmemory-policy", "volatile-lru") as server:
        coordinator = Place(server).coordinator()
        runs = [coordinator.open(f"run-{number}") for number in range(12)]
        for run in runs:
            run.budget("cost", 100).spend(90)
        with server.client() as client:
            client.config_set("maxmemory", int(client.info("memory")["used_memory"]) + 4_000_000)
        left = []
        for run in runs:
            with contextlib.suppress(StateLost):
                run.scratchpad.set("big", b"x" * 1_000_000)
        for run in runs:
            with contextlib.suppress(StateLost):
                left.append(run.budget("cost", 100).left())
        assert 0 < len(left) < len(runs)
        assert set(left) == {10}


def test_a_replica_takes_no_writes(program: Program, server: Server) -> None:
    with Server(program, "--replicaof", "127.0.0.1", str(server.port)) as replica:
        coordinator = Place(replica).coordinator()
        with pytest.raises(Unavailable, match="replica"):
            coordinator.open("run")


def test_with_the_fallback_to_proceed_what_limits_lets_through(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "runtally")
    state = place.coordinator(fallback="proceed").open(place.run_id)
    budget = state.budget("cost", 100)
    assert budget.spend(99) == 1
    reservation = budget.reserve(1)
    place.server.kill()
    assert budget.spend(50) is None
    budget.reserve(50).settle(10)
    reservation.settle(0)
    with state.semaphore("model", 1).slot() as one, state.semaphore("model", 1).slot() as two:
        assert one.held
        assert not one.guarded
        assert two.held
    assert state.cancelled() is None
    state.heartbeat("planner")
    assert [record.message for record in caplog.records if "without" in record.message] == [
        caplog.records[0].message
    ]
    for never in (
        lambda: state.lease("index").acquire(),
        lambda: state.scratchpad.get("plan"),
        lambda: state.scratchpad.set("plan", "x"),
        lambda: state.cancel("enough"),
        state.workers,
        budget.spent,
    ):
        with pytest.raises(Unavailable):
            never()


def test_a_worker_that_starts_without_a_server_proceeds_and_joins_later(place: Place) -> None:
    place.coordinator().open(place.run_id)
    place.server.pause()
    state = place.coordinator(fallback="proceed").join(place.run_id)
    assert state.budget("cost", 100).spend(1) is None
    place.server.resume()
    assert state.budget("cost", 100).spend(1) is None, "not asked so soon again"
    place.clock.move(5)
    assert state.budget("cost", 100).spend(1) == 99


def test_one_who_joined_without_a_server_believes_as_long_as_the_run_does(place: Place) -> None:
    place.coordinator(ttl_s=10).open(place.run_id)
    network = Network()
    network.lose("all")
    state = place.coordinator(network, ttl_s=300, fallback="proceed").join(place.run_id)
    network.heal()
    place.clock.move(5)
    with state.semaphore("model", 1).slot() as slot:
        assert slot.guarded
        place.clock.move(10)
        assert not slot.held


def test_an_open_without_an_answer_is_not_done_again(place: Place) -> None:
    """It may have been done, others may have spent, and all may have vanished since."""
    network = Network()
    network.lose("answer", "answer", "answer")
    starter = place.coordinator(network, fallback="proceed").open(place.run_id)
    place.coordinator().join(place.run_id).budget("cost", 100).spend(90)
    place.server.flush()
    place.clock.move(5)
    assert starter.budget("cost", 100).spend(90) is None
    with pytest.raises(StateLost):
        place.coordinator().join(place.run_id)


def test_what_is_lost_is_told_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "runtally")
    state = place.coordinator(fallback="proceed").open(place.run_id)
    place.server.flush()
    for _ in range(10):
        assert state.budget("cost", 100).spend(1) is None
    assert len(caplog.records) == 1


def test_a_slot_is_given_back_also_right_after_an_outage(place: Place) -> None:
    network = Network()
    state = place.coordinator(network, fallback="proceed").open(place.run_id)
    with state.semaphore("model", 1).slot() as slot:
        network.lose("all")
        assert state.budget("cost", 100).spend(1) is None
        network.heal()
        slot.renew()
    with place.coordinator().join(place.run_id).semaphore("model", 1).slot():
        pass


def test_to_proceed_is_not_to_ignore_what_the_server_says(place: Place) -> None:
    state = place.coordinator(fallback="proceed").open(place.run_id)
    state.budget("cost", 100).spend(100)
    with pytest.raises(BudgetExceeded):
        state.budget("cost", 100).spend(1)
    with state.semaphore("model", 1).slot(), pytest.raises(Busy):
        state.semaphore("model", 1).slot().acquire()


def test_a_busy_server_is_unavailable_and_a_wrong_key_is_not(
    coordinator: Coordinator, place: Place
) -> None:
    state = coordinator.open(place.run_id)
    with place.server.client() as client:
        client.set(f"runtally:{{acme/{place.run_id}}}", "somebody else's")
    with pytest.raises(Exception, match="WRONGTYPE") as wrong:
        state.cancelled()
    assert not isinstance(wrong.value, CoordinationError)


def test_settings_are_checked(server: Server) -> None:
    for wrong, message in (
        ({"url": server.url, "ttl_s": 0.1}, "ttl_s is 0.1: it is 1.0 to 300.0"),
        ({"url": server.url, "keep_s": 1}, "keep_s is 1: it is 60.0 to 604800.0"),
        ({"url": server.url, "fallback": "ignore"}, "fallback is 'ignore'"),
        ({}, "needs either url or client"),
        ({"client": valkey.Valkey(decode_responses=True)}, "decode_responses=True"),
        ({"url": server.url, "tenant_id": "a/b"}, "tenant_id 'a/b'"),
    ):
        with pytest.raises(ValueError, match=message):
            Coordinator(**{"tenant_id": "acme", **wrong})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="run_id 'a/b'"):
        Coordinator(tenant_id="acme", url=server.url).open("a/b")


def test_tenants_share_nothing(server: Server) -> None:
    run_id = new_run_id()
    acme = Coordinator(tenant_id="acme", url=server.url).open(run_id)
    with pytest.raises(StateLost):
        Coordinator(tenant_id="other", url=server.url).join(run_id)
    other = Coordinator(tenant_id="other", url=server.url).open(run_id)
    acme.budget("cost", 10).spend(10)
    acme.cancel("enough")
    assert other.budget("cost", 10).spend(1) == 9
    assert other.cancelled() is None
