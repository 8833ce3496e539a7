"""F42: Valkey down, failed over or flushed, and what is recorded is the same."""

import time
from collections.abc import Callable
from decimal import Decimal

import pytest

from functions.core import keys
from functions.core.keys import RunRef
from runtally import Recorder
from tests.coordination.server import Server
from tests.coordination.virtual import Place, new_run_id
from tests.memory_stage import MemoryStage
from tests.unit.sdk.recording import KeepingSender

STEPS = 40


def nothing(_: Server) -> None:
    """As it should be."""


def fail_over(server: Server) -> None:
    with server.client() as client:
        for key in client.keys("*"):
            client.hincrby(key, "seq", -5)


def recorded(server: Server, happens: Callable[[Server], None]) -> dict[str, object]:
    """What the stage says of a run that coordinates its steps, and half-way meets an event."""
    place = Place(server)
    sender = KeepingSender()
    run_id = new_run_id()
    state = place.coordinator(timeout_s=0.1, fallback="proceed").open(run_id)
    stage = MemoryStage()
    stage.now_ns = time.time_ns()
    recorder = Recorder(tenant_id="acme", sender=sender)
    with recorder, recorder.run("research", run_id=run_id) as run:
        for number in range(STEPS):
            if number == STEPS // 2:
                happens(server)
            cost = state.budget("cost", 10**9).reserve(1_000)
            with state.semaphore("model", 8).slot(), run.step("ask", kind="model") as step:
                step.set(input_tokens=number, cost_usd=Decimal(number) / 10**6)
            cost.settle(number)
    assert stage.ingest(*sender.bodies) == []
    stage.drain()
    summary = stage.item(RunRef("acme", run_id), keys.SUMMARY)
    assert summary is not None
    return {
        name: value
        for name, value in summary.items()
        if name.endswith("_total") or name == "status"
    }


@pytest.fixture
def undisturbed(server: Server) -> dict[str, object]:
    found = recorded(server, nothing)
    assert found["agents_total"] == STEPS
    assert found["cost_usd_total"] == Decimal(sum(range(STEPS))) / 10**6
    return found


@pytest.mark.parametrize("happens", [Server.flush, fail_over])
def test_a_run_is_recorded_alike(
    server: Server, undisturbed: dict[str, object], happens: Callable[[Server], None]
) -> None:
    assert recorded(server, happens) == undisturbed


@pytest.mark.parametrize("happens", [Server.kill, Server.pause])
def test_also_when_the_server_dies_or_stands_still(
    undisturbed: dict[str, object], server: Server, happens: Callable[[Server], None]
) -> None:
    with Server(server.program) as spoilt:
        assert recorded(spoilt, happens) == undisturbed
