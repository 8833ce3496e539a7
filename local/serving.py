"""Programs that serve on a port of this machine until they are stopped: the embedded AWS, a page.

One that is not detached ends with this process, however that dies: its standard input is a pipe
that ends then, and its program leaves when it does.
"""

import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from local.commands import LocalStageError
from local.process_group import kill_group

HOST: Final = "127.0.0.1"

_READY_WITHIN_S: Final = 30
_PORT_ATTEMPTS: Final = 3


class Serving:
    """A program that serves; it leads a process group of its own."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        detached: bool,
    ) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own arguments
                arguments,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, answers: Callable[[], bool], failed: str, advice: str) -> None:
        """Return once it answers. If it ends before, or is late: end it, raise LocalStageError."""
        ready = False
        try:
            ready = self._becomes_ready(answers)
        finally:
            if not ready:
                self.stop()
        if not ready:
            raise LocalStageError(failed, advice, self._log)

    def _becomes_ready(self, answers: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _READY_WITHIN_S
        while self._process.poll() is None and time.monotonic() < deadline:
            # The process is looked at once more: what answers on the port may be somebody else.
            if answers() and self._process.poll() is None:
                return True
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        """End it with all that it started. To be called once: the id may be given anew."""
        kill_group(self._process.pid)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def free_port(preferred: int = 0) -> int:
    """A port that nobody listens on: the preferred one, else any."""
    try:
        # Listening, unlike binding alone, is not refused for connections that ended lately.
        with socket.create_server((HOST, preferred)) as probe:
            port: int = probe.getsockname()[1]
            return port
    except OSError:
        if not preferred:
            raise
        return free_port()


def on_a_free_port(
    start: Callable[[int], None], preferred: int = 0, free: Callable[[int], int] = free_port
) -> None:
    """Call `start` with a free port, the preferred one if it is; anew when it fails."""
    for _ in range(_PORT_ATTEMPTS - 1):
        # Somebody else may take the port after we found it free.
        with suppress(LocalStageError):
            start(free(preferred))
            return
    start(free(0))
