"""What a worker's user may do, as the stack spells it, on a real server that enforces it."""

from collections.abc import Callable, Iterator

import pytest
import valkey
from valkey.exceptions import ValkeyClusterException

from cdk.coordination_access import ACCESS_STRING
from runtally.coordination import Coordinator, RunState, Unavailable
from tests.coordination.server import Server, clustered, programs
from tests.coordination.virtual import new_run_id


def signed_in(server: Server, access: str) -> Coordinator:
    with server.client() as admin:
        admin.script_flush()
        admin.execute_command("ACL", "SETUSER", "worker", "reset", *access.split(), ">a-password")
    url = server.url.replace("://", "://worker:a-password@")
    return Coordinator(tenant_id="acme", url=url, background=False)


def use_everything(state: RunState) -> None:
    state.budget("cost", 100).reserve(3).settle(1)
    state.budget("cost", 100).left()
    with state.semaphore("model", 8).slot() as slot:
        slot.renew()
    state.scratchpad.set("plan", "x")
    state.scratchpad.append("plan", "x")
    state.scratchpad.compare_and_set("plan", "y", version=None)
    state.scratchpad.get("plan")
    state.scratchpad.delete("plan")
    state.heartbeat("planner")
    state.workers()
    state.cancel("enough")
    state.cancelled()


@pytest.fixture(scope="module", params=programs(), ids=lambda program: program.name)
def cluster(request: pytest.FixtureRequest) -> Iterator[Server]:
    with clustered(request.param) as server:
        yield server


def use_as_cluster(server: Server, access: str) -> None:
    """By the client that asks most for itself."""
    signed_in(server, access).close()
    client = valkey.ValkeyCluster(
        host="127.0.0.1", port=server.port, username="worker", password="a-password"
    )
    with Coordinator(tenant_id="acme", client=client, background=False) as coordinator:
        use_everything(coordinator.open(new_run_id()))


def is_refused(server: Server, access: str) -> bool:
    try:
        use_as_cluster(server, access)
    except (valkey.ValkeyError, ValkeyClusterException, Unavailable):
        return True
    return False


def test_it_is_enough_for_all_that_the_library_does(server: Server, cluster: Server) -> None:
    with signed_in(server, ACCESS_STRING) as coordinator:
        use_everything(coordinator.open(new_run_id()))
    use_as_cluster(cluster, ACCESS_STRING)


def test_none_of_it_is_more_than_is_needed(cluster: Server) -> None:
    commands = [each for each in ACCESS_STRING.split() if each[0] == "+"]
    assert len(commands) > 10
    for command in commands:
        access = " ".join(each for each in ACCESS_STRING.split() if each != command)
        assert is_refused(cluster, access), f"{command} is not needed"


@pytest.mark.parametrize(
    "attempt",
    [
        lambda client: client.get("other:{acme/run-1}"),
        lambda client: client.hget("other:{acme/run-1}", "epoch"),
        lambda client: client.flushall(),
        lambda client: client.keys("*"),
        lambda client: client.config_get("*"),
        lambda client: client.publish("channel", "x"),
        lambda client: client.acl_list(),
        lambda client: client.eval("return redis.call('HGET', 'other', 'x')", 1, "runtally:x"),
    ],
)
def test_anything_else_is_refused(
    server: Server, attempt: Callable[[valkey.Valkey], object]
) -> None:
    signed_in(server, ACCESS_STRING).close()
    client = valkey.Valkey(port=server.port, username="worker", password="a-password")
    with client, pytest.raises(valkey.ResponseError, match=r"permission|can't access"):
        attempt(client)
