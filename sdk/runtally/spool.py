"""Messages on disk for as long as they cannot be sent; whoever uses the directory next sends them.

One file a message, written under a temporary name, fsynced, renamed: what bears its final name is
whole. Two processes that send the same file do no harm, since the bytes are the same, and the
second to delete it finds nothing to delete.
"""

import contextlib
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runtally import ids
from runtally.cuts import Sealed

DEFAULT_MAX_BYTES: Final = 1024**3
_SUFFIX = ".message"
_TEMPORARY = ".tmp"
_ABANDONED_AFTER_S = 3_600
_LOOK_AGAIN_S = 5.0


class SpoolFull(Exception):  # noqa: N818 - the fact
    """There is no room for the message within `max_bytes`."""


class Spool:
    """A directory of sealed messages, in the order in which they were put. Every method may raise
    OSError.
    """

    def __init__(self, directory: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.directory = directory
        self.max_bytes = max_bytes
        self._used = 0
        self._looked_at = -math.inf

    def put(self, message: Sealed) -> Path:
        """Keep a message; once this returns, it survives the process and the machine.

        Raises SpoolFull when it does not fit.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_room(len(message.body))
        name = f"{ids.new_id()}.{message.events}{_SUFFIX}"
        path, temporary = self.directory / name, self.directory / (name + _TEMPORARY)
        try:
            with temporary.open("xb") as file:
                file.write(message.body)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        self._sync_directory()
        self._used += len(message.body)
        return path

    def waiting(self) -> list[Path]:
        """The files to be sent, oldest first."""
        try:
            return sorted(path for path in self.directory.iterdir() if path.suffix == _SUFFIX)
        except FileNotFoundError:
            return []

    def read(self, path: Path) -> Sealed | None:
        """The message in a file, or None when another process has sent it meanwhile."""
        try:
            return Sealed(path.read_bytes(), _events_in(path))
        except FileNotFoundError:
            return None

    def remove(self, path: Path) -> None:
        self._looked_at = -math.inf
        path.unlink(missing_ok=True)

    def counts(self) -> tuple[int, int]:
        """How many messages wait, and how many events are in them."""
        paths = self.waiting()
        return len(paths), sum(_events_in(path) for path in paths)

    def _make_room(self, size: int) -> None:
        # Other processes add and remove too: look now and then, and before saying "full".
        now = time.monotonic()
        stale = now - self._looked_at >= _LOOK_AGAIN_S
        if stale or self._used + size > self.max_bytes:
            self._used, self._looked_at = sum(self._sizes()), now
        if self._used + size > self.max_bytes:
            raise SpoolFull(f"{self._used} of {self.max_bytes} bytes are in use: {self.directory}")

    def _sizes(self) -> Iterator[int]:
        for path in self.directory.iterdir():
            with contextlib.suppress(FileNotFoundError):
                found = path.stat()
                if path.suffix == _TEMPORARY and found.st_mtime < time.time() - _ABANDONED_AFTER_S:
                    path.unlink()  # its writer was killed; what it held was never acknowledged
                    continue
                yield found.st_size

    def _sync_directory(self) -> None:
        if os.name == "posix":  # elsewhere a directory cannot be opened, nor needs to be
            descriptor = os.open(self.directory, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _events_in(path: Path) -> int:
    count = path.name.split(".")[1]
    return int(count) if count.isdigit() else 1
