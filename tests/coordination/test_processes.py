"""Threads, forks, and what is left behind."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from runtally.coordination import Coordinator
from runtally.coordination.blocking.keeper import Keeper
from runtally.coordination.errors import Unavailable
from runtally.coordination.requests import Session, cancel, nothing
from tests.coordination.server import Server, programs
from tests.coordination.virtual import new_run_id
from tests.unit.sdk.recording import until

FORKS = """
import os, sys
from runtally.coordination import BudgetExceeded, Coordinator

state = Coordinator(tenant_id="acme", url=sys.argv[1], ttl_s=1.0).open("forked")
budget = state.budget("cost", 100)
lease = state.lease("index").acquire()
budget.spend(1)
read, write = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        try:
            budget.spend(40)
        except BudgetExceeded:
            pass
        else:
            os.write(write, b"spent ")
        state.heartbeat("child")
        os._exit(0)
for _ in range(8):
    os.wait()
os.close(write)
print(os.read(read, 1_000).split().count(b"spent"), budget.spent(), sorted(state.workers()))
lease.release()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(programs()[0]) as server:
        yield server


def test_a_child_of_a_fork_spends_for_itself(server: Server) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, server.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout.split(maxsplit=2) == ["2", "81", "['child']\n"]


def test_no_thread_is_left_that_has_nothing_to_say(server: Server) -> None:
    coordinator = Coordinator(tenant_id="acme", url=server.url, ttl_s=1.0)
    state = coordinator.open(new_run_id())
    for _ in range(2):
        with state.lease("index"):
            assert threads()
        until(lambda: not threads())
    state.heartbeat("planner")
    assert threads()
    coordinator.close()
    assert not threads()


def test_who_opens_a_run_says_how_often_hearts_beat(server: Server) -> None:
    run_id = new_run_id()
    with Coordinator(tenant_id="acme", url=server.url, ttl_s=3.0) as opener:
        opener.open(run_id)
    joiner = Coordinator(tenant_id="acme", url=server.url, ttl_s=300.0)
    with joiner, joiner.join(run_id).lease("index") as lease:
        threading.Event().wait(4.0)
        lease.check()


def test_a_heart_beats_on_whatever_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    beats: list[int] = []

    def beat() -> bool:
        beats.append(1)
        if len(beats) < 4:
            raise [Unavailable, RuntimeError, OSError][len(beats) - 1]("for the test")
        return len(beats) < 6

    keeper = Keeper(beat, lambda: 0.01)
    keeper.wake()
    until(lambda: len(beats) >= 6 and not threads())
    assert len(caplog.records) == 1, "once an outage"
    keeper.wake()
    until(lambda: len(beats) >= 7)
    keeper.stop()


def test_a_reason_that_was_heard_of_is_not_unheard() -> None:
    """Threads may read their answers in another order than the server gave them."""
    session = Session("epoch", 30.0)
    with session.call(cancel("enough")) as call:
        session.result(cancel("enough"), call, [b"ok", b"2", b"enough"])
        session.result(nothing(), call, [b"ok", b"1", b""])
    assert session.cancel_reason == "enough"


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "runtally-coordination"]
