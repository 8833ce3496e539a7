"""Other programs, run for the user: their output goes to a file, and its end into the error."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from local.paths import BUILD, LOGS, ROOT

_TAIL_LINES = 15
_UV_PLACES: Final = (
    Path.home() / ".local" / "bin" / "uv",
    BUILD / "tools" / "bin" / "uv",
)


class LocalStageError(Exception):
    """Something that the local stage needs did not work; says what failed and what to do."""

    def __init__(self, failed: str, advice: str, log: Path | None = None) -> None:
        super().__init__(failed)
        self.failed = failed
        self.advice = advice
        self.log = log

    def __str__(self) -> str:
        parts = [self.failed]
        if self.log is not None:
            parts += [last_lines(self.log), f"The whole log: {self.log}"]
        return "\n".join([*parts, self.advice])


def last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"  | {line}" for line in lines[-_TAIL_LINES:])


class Command:
    """A program that runs beside us until `finish` is called, or until leaving its `with` block."""

    def __init__(
        self, arguments: Sequence[str | Path], env: Mapping[str, str], log: Path, advice: str
    ) -> None:
        self._name = " ".join([Path(arguments[0]).name, *map(str, arguments[1:3])])
        self._log = log
        self._advice = advice
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own arguments
                arguments,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def finish(self, within_s: float) -> None:
        """Return once the program has succeeded. Raises LocalStageError if it fails or is late."""
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            failed = f"`{self._name}` did not finish within {within_s:g} s."
            raise LocalStageError(failed, self._advice, self._log) from None
        if code != 0:
            failed = f"`{self._name}` failed (exit code {code})."
            raise LocalStageError(failed, self._advice, self._log)


def run(
    arguments: Sequence[str | Path],
    *,
    log: str,
    advice: str,
    env: Mapping[str, str] | None = None,
    within_s: float = 300,
) -> None:
    """Run a program to its end. Raises LocalStageError, with its last lines, when it fails."""
    with Command(arguments, os.environ if env is None else env, LOGS / log, advice) as command:
        command.finish(within_s)


def uv() -> str:
    """The path of uv. `uv run` and make say where it is; else it is where its installers put it."""
    found = os.environ.get("UV") or shutil.which("uv")
    for place in _UV_PLACES:
        found = found or (str(place) if place.exists() else None)
    if found is None:
        raise LocalStageError("uv was not found.", "Run `make setup`: it brings uv along.")
    return found


def this_python() -> str:
    """What uv shall make environments from: functions run on Python 3.13, whatever runs this."""
    return sys.executable if sys.version_info[:2] == (3, 13) else "3.13"


@contextmanager
def only_one(what: str) -> Iterator[None]:
    """Let one process at a time make what several may need, such as parallel test workers."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
