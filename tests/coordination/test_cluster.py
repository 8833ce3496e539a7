"""Over a cluster's client, as ElastiCache has it: all of a run is in one slot of the cluster."""

from collections.abc import Iterator

import pytest
import valkey
from valkey.crc import key_slot

from runtally.coordination import Coordinator, Unavailable
from runtally.coordination.requests import key_of
from tests.coordination.server import Server, clustered, programs
from tests.coordination.virtual import new_run_id


@pytest.fixture(scope="module", params=programs(), ids=lambda program: program.name)
def cluster(request: pytest.FixtureRequest) -> Iterator[Server]:
    with clustered(request.param) as server:
        yield server


def test_the_client_of_a_cluster_does(cluster: Server) -> None:
    client = valkey.ValkeyCluster(host="127.0.0.1", port=cluster.port)
    with Coordinator(tenant_id="acme", client=client) as coordinator:
        state = coordinator.open(new_run_id())
        assert state.budget("cost", 10).spend(3) == 7
        with state.lease("index"):
            state.scratchpad.set("plan", "x")


def test_so_does_a_plain_client_where_one_address_has_all_slots(cluster: Server) -> None:
    with Coordinator(tenant_id="acme", url=cluster.url) as coordinator:
        assert coordinator.open(new_run_id()).budget("cost", 10).spend(3) == 7


def test_the_braces_place_a_run() -> None:
    key = key_of("acme", "run-1")
    assert key == "runtally:{acme/run-1}"
    assert key_slot(key.encode()) == key_slot(b"anything{acme/run-1}else")
    slots = {key_slot(key_of("acme", f"run-{number}").encode()) for number in range(1_000)}
    assert len(slots) > 900


def test_a_cluster_that_died_is_unavailable(cluster: Server) -> None:
    with clustered(cluster.program) as mortal:
        client = valkey.ValkeyCluster(host="127.0.0.1", port=mortal.port)
        with Coordinator(tenant_id="acme", client=client) as coordinator:
            state = coordinator.open("run-1")
            mortal.kill()
            with pytest.raises(Unavailable):
                state.budget("cost", 10).spend(3)
