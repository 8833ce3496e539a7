"""Where the page is served, and what makes the key that it asks for."""

import pytest

from local.commands import LocalStageError
from local.serving import on_a_free_port
from local.stage_commands import key_command


class Ports:
    """A machine on which these ports are taken, the last ones only after they were looked for."""

    def __init__(self, *taken: int, soon: tuple[int, ...] = ()) -> None:
        self._taken = {*taken}
        self._soon = {*soon}
        self._next = 50_000
        self.tried: list[int] = []

    def free(self, preferred: int) -> int:
        if preferred and preferred not in self._taken:
            return preferred
        self._next += 1
        return self._next

    def start(self, port: int) -> None:
        self.tried.append(port)
        if port in self._soon:
            self._taken.add(port)
            raise LocalStageError(f"{port} is taken", "Try again.")


def test_a_server_has_the_port_that_it_prefers() -> None:
    ports = Ports()
    on_a_free_port(ports.start, 8400, ports.free)
    assert ports.tried == [8400]


def test_a_server_has_another_port_when_the_preferred_one_is_taken() -> None:
    ports = Ports(8400)
    on_a_free_port(ports.start, 8400, ports.free)
    assert ports.tried == [50_001]


def test_a_port_that_is_taken_meanwhile_is_given_up() -> None:
    ports = Ports(soon=(8400, 50_001))
    on_a_free_port(ports.start, 8400, ports.free)
    assert ports.tried == [8400, 50_001, 50_002]


def test_what_never_starts_is_told() -> None:
    ports = Ports(soon=(8400, 50_001, 50_002))
    with pytest.raises(LocalStageError, match="50002 is taken"):
        on_a_free_port(ports.start, 8400, ports.free)


@pytest.mark.parametrize(
    ("tenants", "command"),
    [
        ([], "runtally tenants create demo && runtally keys create demo --name page"),
        (["acme"], "runtally keys create acme --name page"),
        (["acme", "demo"], "runtally keys create TENANT --name page"),
    ],
)
def test_the_command_for_a_key_is_for_a_tenant_that_is_there(
    tenants: list[str], command: str
) -> None:
    assert key_command(tenants) == command
