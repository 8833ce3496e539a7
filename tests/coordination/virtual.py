"""Several processes in one, with a time that is moved by hand and a network that loses what it is
told to lose."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, cast

import valkey
from valkey.backoff import NoBackoff
from valkey.connection import Connection, ConnectionPool
from valkey.retry import Retry

from runtally.coordination import CoordinationError, Coordinator, connecting
from runtally.coordination.blocking.clock import Clock
from tests.coordination.server import Server

TTL_S: Final = 30.0
Loss = Literal["request", "answer", "all"]

_run_ids: Final[Iterator[int]] = itertools.count()


def new_run_id() -> str:
    return f"run-{next(_run_ids)}"


class VirtualClock(Clock):
    """Goes on by itself as well, as the server's does."""

    def __init__(self) -> None:
        self.moved_s = 0.0
        self.on_sleep: Callable[[float], None] = self.move

    def monotonic(self) -> float:
        return super().monotonic() + self.moved_s

    def sleep(self, seconds: float) -> None:
        self.on_sleep(seconds)

    def move(self, seconds: float) -> None:
        self.moved_s += seconds


class Network:
    """What becomes of the next packets: `lose` plans it, one entry a packet that is sent."""

    def __init__(self) -> None:
        self._plan: list[Loss] = []
        self.on_send: Callable[[], None] | None = None
        self.late: list[Any] = []
        """Packets that were lost on their way, and may still arrive."""

    def lose(self, *losses: Loss) -> None:
        self._plan += losses

    def take(self) -> Loss | None:
        if not self._plan:
            return None
        if self._plan[0] == "all":
            return "request"
        return self._plan.pop(0)

    def heal(self) -> None:
        self._plan.clear()


def connection_over(network: Network) -> type[Connection]:
    class LossyConnection(Connection):
        _answer_is_lost = False

        def send_command(self, *command: Any, **options: Any) -> Any:
            loss = None
            if command[0] in {"EVAL", "EVALSHA"}:
                loss = network.take()
                if network.on_send:
                    network.on_send()
            if loss == "request":
                network.late.append(command)
                raise valkey.ConnectionError("the request got lost")
            sent = cast("Any", super()).send_command(*command, **options)
            # Behind it: a connection may have to be made first, which has commands of its own.
            self._answer_is_lost = loss == "answer"
            return sent

        def read_response(self, *options: Any, **named: Any) -> Any:
            answer = cast("Any", super()).read_response(*options, **named)
            if self._answer_is_lost:
                self._answer_is_lost = False
                raise valkey.ConnectionError("the answer got lost")
            return answer

    return LossyConnection


class Place:
    """Processes of one tenant, which share a server and a virtual time."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.clock = VirtualClock()
        self.clock.on_sleep = self.pass_time
        self.run_id = new_run_id()

    def coordinator(
        self, network: Network | None = None, timeout_s: float = 1.0, **settings: Any
    ) -> Coordinator:
        """Without threads: tests say when a heart beats."""
        options = connecting.options(timeout_s, iam=None)
        pool = ConnectionPool(
            connection_class=connection_over(network or Network()),
            port=self.server.port,
            retry=Retry(NoBackoff(), connecting.ATTEMPTS - 1),
            **options,
        )
        client = valkey.Valkey(connection_pool=pool)
        fixed: dict[str, Any] = {
            "tenant_id": "acme",
            "ttl_s": TTL_S,
            "background": False,
            "clock": self.clock,
        }
        return Coordinator(**{**fixed, **settings}, client=client)

    def pass_time(self, seconds: float) -> None:
        """For the workers and for the server, on which somebody asks for the run's state meanwhile:
        there time passes only as it is seen to pass."""
        observer = self._observer()
        step = TTL_S / 5
        while seconds > 0:
            self.clock.move(min(step, seconds))
            self.server.step_clock(min(step, seconds))
            observer()
            seconds -= step

    def _observer(self) -> Callable[[], object]:
        try:
            return self.coordinator().join(self.run_id).cancelled
        except CoordinationError:  # nothing is open, so nothing lapses there
            return lambda: None
