"""Any interleaving of workers, lost packets, deaths, stalls, steps of the clock and lost state.

The workers are real clients on a real server; their time and the server's are moved by hand, so
that half an hour of a run takes milliseconds. What must hold is checked after every step.
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtally.coordination import (
    BudgetExceeded,
    Busy,
    CoordinationError,
    Lease,
    NotHeld,
    RunState,
    Slot,
    StateLost,
    Unavailable,
)
from tests.coordination.server import Server
from tests.coordination.virtual import TTL_S, Network, Place, new_run_id

_WORKERS: Final = 4
_SIZE: Final = 2
_LIMIT: Final = 100

_workers = st.integers(0, _WORKERS - 1)
_losses = st.lists(st.sampled_from(["request", "answer"]), min_size=1, max_size=3)


class Worker:
    """One process: what it holds, what it was told that it has spent."""

    def __init__(self, place: Place) -> None:
        self.network = Network()
        self.coordinator = place.coordinator(self.network)
        self.state: RunState | None = None
        self.slots: list[Slot] = []
        self.leases: list[Lease] = []


class Coordinated(RuleBasedStateMachine):
    """At most `_SIZE` slots and one lease are held, as the holders themselves see it; no more than
    the limit is spent; a write under a fencing number below an accepted one is never accepted."""

    server: Server

    @initialize()
    def start(self) -> None:
        self.place = Place(self.server)
        self.run_id = self.place.run_id = new_run_id()
        self.workers = [Worker(self.place) for _ in range(_WORKERS)]
        self.spent = 0
        """What workers were told; `unsure` more may have been counted."""
        self.unsure = 0
        self.highest_written = 0
        self.highest_granted = 0
        self.stepped_at = float("-inf")
        self.is_lost = False
        self.appended: list[bytes] = []
        self.maybe_appended: list[bytes] = []
        self.lines = itertools.count()
        self.version: str | None = None
        """Of a value that is only ever set by comparing; unknown where an answer got lost."""
        self.is_version_known = True
        self.workers[0].state = self.workers[0].coordinator.open(self.run_id)

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """What a worker may be told at any time; that the state is lost, only when it is."""
        try:
            yield
        except (Busy, NotHeld, Unavailable):
            pass
        except StateLost:
            self.lost_rightly()

    def lost_rightly(self) -> None:
        assert self.is_lost, "told that the state is lost, and it is not"

    def joined(self, number: int) -> RunState | None:
        worker = self.workers[number]
        if worker.state is None:
            with self.told():
                worker.state = worker.coordinator.join(self.run_id)
        return worker.state

    @rule(number=_workers)
    def take_slot(self, number: int) -> None:
        state = self.joined(number)
        if state is not None:
            with self.told():
                slot = state.semaphore("model", _SIZE).slot().acquire()
                self.workers[number].slots.append(slot)

    @rule(number=_workers)
    def take_lease(self, number: int) -> None:
        state = self.joined(number)
        if state is not None:
            with self.told():
                lease = state.lease("index").acquire()
                assert lease.fence > self.highest_granted
                self.highest_granted = lease.fence
                self.workers[number].leases.append(lease)

    @rule(number=_workers)
    def give_back(self, number: int) -> None:
        worker = self.workers[number]
        for held in (worker.slots or worker.leases)[:1]:
            # Of a state that was lost, it may be, and reopened since.
            with contextlib.suppress(NotHeld, StateLost, Unavailable):
                held.release()
            assert not held.held

    @rule(number=_workers)
    def beat(self, number: int) -> None:
        state = self.workers[number].state
        if state is not None:
            with self.told():
                state.beat()

    @rule(number=_workers)
    def write(self, number: int) -> None:
        """Every holder there ever was may try: DynamoDB's condition, as `fenced_put` spells it."""
        for lease in self.workers[number].leases:
            if lease.fence >= self.highest_written:
                self.highest_written = lease.fence
            elif lease.held:
                raise AssertionError("one that holds the lease cannot write")

    @rule(number=_workers, units=st.integers(0, 40))
    def spend(self, number: int, units: int) -> None:
        state = self.joined(number)
        if state is None:
            return
        try:
            state.budget("cost", _LIMIT).spend(units)
        except BudgetExceeded:
            self.refused_rightly(units)
        except Unavailable:
            self.unsure += units
        except StateLost:
            self.lost_rightly()
        else:
            self.spent += units

    def refused_rightly(self, units: int) -> None:
        assert self.spent + self.unsure + units > _LIMIT, "refused, and there was enough left"

    @rule(number=_workers, reserved=st.integers(0, 40), part=st.integers(0, 100))
    def reserve(self, number: int, reserved: int, part: int) -> None:
        state = self.joined(number)
        if state is None:
            return
        used = reserved * part // 100
        try:
            reservation = state.budget("cost", _LIMIT).reserve(reserved)
        except BudgetExceeded:
            self.refused_rightly(reserved)
            return
        except StateLost:
            self.lost_rightly()
            return
        except Unavailable:
            self.unsure += reserved
            return
        self.spent += used
        self.unsure += reserved - used
        with self.told():
            reservation.settle(used)
            self.unsure -= reserved - used

    @rule(number=_workers)
    def append(self, number: int) -> None:
        state = self.joined(number)
        if state is None:
            return
        line = f"{next(self.lines)}\n".encode()
        try:
            state.scratchpad.append("log", line)
        except Unavailable:
            self.maybe_appended.append(line)
        except StateLost:
            self.lost_rightly()
        else:
            self.appended.append(line)

    @rule(number=_workers, is_current=st.booleans())
    def compare_and_set(self, number: int, is_current: bool) -> None:
        state = self.joined(number)
        if state is None or not self.is_version_known:
            return
        expected = self.version if is_current else "another"
        try:
            version = state.scratchpad.compare_and_set("leader", f"{number}", version=expected)
        except Unavailable:
            self.is_version_known = not is_current
        except StateLost:
            self.lost_rightly()
        else:
            self.set_rightly(version, is_current)
            self.version = version or self.version

    def set_rightly(self, version: str | None, is_current: bool) -> None:
        assert (version is not None) is is_current, "set, or refused, by another version"

    @rule(number=_workers, losses=_losses)
    def lose_packets(self, number: int, losses: list[str]) -> None:
        self.workers[number].network.lose(*losses)  # type: ignore[arg-type]

    @rule(number=_workers)
    def cut_off(self, number: int) -> None:
        self.workers[number].network.lose("all")

    @rule(number=_workers)
    def heal(self, number: int) -> None:
        self.workers[number].network.heal()

    @rule(number=_workers)
    def deliver_late(self, number: int) -> None:
        """What was given up arrives after all."""
        network = self.workers[number].network
        with self.server.client() as client:
            for command in network.late:
                with contextlib.suppress(Exception):
                    client.execute_command(*command)
        network.late.clear()

    @rule(number=_workers)
    def die(self, number: int) -> None:
        """And another starts in its place. The dead do nothing more, so what they held is free."""
        self.workers[number] = Worker(self.place)

    @rule(part=st.sampled_from([0.05, 0.15, 0.5, 0.65, 0.8]))
    def pass_time(self, part: float) -> None:
        self.place.pass_time(part * TTL_S)

    @precondition(lambda self: self.place.clock.monotonic() > self.stepped_at + TTL_S)
    @rule(step_s=st.sampled_from([-3_600.0, 0.3 * TTL_S, 3_600.0]))
    def step_the_clock(self, step_s: float) -> None:
        self.stepped_at = self.place.clock.monotonic()
        self.server.step_clock(step_s)

    @rule(number=_workers)
    def lose_the_state(self, number: int) -> None:
        """And one who knows what was spent reopens it."""
        self.server.flush()
        self.is_lost = True
        self.appended, self.maybe_appended = [], []
        self.version, self.is_version_known = None, True
        worker = self.workers[number]
        with contextlib.suppress(Unavailable):
            worker.state = worker.coordinator.reopen(
                self.run_id,
                spent={"cost": min(_LIMIT, self.spent + self.unsure)},
                fence=self.highest_granted,
            )
            self.is_lost = False
            self.spent, self.unsure = min(_LIMIT, self.spent + self.unsure), 0
            for other in self.workers:
                other.state = worker.state if other is worker else None

    @invariant()
    def no_more_hold_than_may(self) -> None:
        for kind, most in (("slots", _SIZE), ("leases", 1)):
            held = [each for worker in self.workers for each in getattr(worker, kind) if each.held]
            assert len(held) <= most, f"{len(held)} {kind} are held"

    @invariant()
    def no_more_is_spent_than_may(self) -> None:
        assert self.spent <= _LIMIT

    def teardown(self) -> None:
        """What was counted is what the workers know, and nothing is off by a unit."""
        checker = self.place.coordinator()
        with contextlib.suppress(CoordinationError):
            state = checker.join(self.run_id)
            counted = state.budget("cost", _LIMIT).spent()
            assert self.spent <= counted <= self.spent + self.unsure
            log = state.scratchpad.get("log")
            lines = [] if log is None else log.data.splitlines(keepends=True)
            assert len(set(lines)) == len(lines), "appended twice"
            assert set(self.appended) <= set(lines)
            assert set(lines) <= {*self.appended, *self.maybe_appended}


@pytest.fixture(scope="module")
def server(stepping_server: Server) -> Server:
    return stepping_server


def test_any_interleaving(server: Server) -> None:
    from hypothesis.stateful import run_state_machine_as_test  # noqa: PLC0415

    machine = type("OnThisServer", (Coordinated,), {"server": server})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=200, stateful_step_count=40, deadline=None)
    )
