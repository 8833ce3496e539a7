"""A server for each test module; its clock may be stepped where libfaketime is installed."""

from collections.abc import Callable, Iterator

import pytest

from runtally.coordination import Coordinator, RunState
from tests.coordination.server import Server, programs
from tests.coordination.virtual import Place


@pytest.fixture(scope="module", params=programs(), ids=lambda program: program.name)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def stepping_server() -> Iterator[Server]:
    """One whose clock can be stepped."""
    program = next((program for program in programs() if program.steps_clock), None)
    if program is None:
        pytest.skip("libfaketime is not installed: scripts/valkey brings it where it may")
    with Server(program) as server:
        yield server


@pytest.fixture
def place(server: Server) -> Place:
    """Coordinators of as many processes as a test wants, on one virtual time."""
    return Place(server)


@pytest.fixture
def coordinator(place: Place) -> Coordinator:
    return place.coordinator()


@pytest.fixture
def process(place: Place) -> Callable[[], Coordinator]:
    """Another process that takes part."""
    return place.coordinator


@pytest.fixture
def workers(
    place: Place, coordinator: Coordinator, process: Callable[[], Coordinator]
) -> list[RunState]:
    """Three that share in a run."""
    first = coordinator.open(place.run_id)
    return [first, *(process().join(place.run_id) for _ in range(2))]
