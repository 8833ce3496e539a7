"""Folders that are made anew only when what they are made from has changed."""

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Stamp:
    """What a folder was made from, noted next to it once it is complete."""

    def __init__(self, folder: Path, state: str) -> None:
        self._folder = folder
        self._state = state
        self._file = folder.with_suffix(".stamp")

    def fits(self) -> bool:
        complete = self._folder.is_dir() and self._file.exists()
        return complete and self._file.read_text() == self._state

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Within, the folder is empty and has no stamp; after an error it stays without one."""
        self._file.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        yield
        self._file.write_text(self._state)


def state_of(*sources: Path) -> str:
    """Of the names and contents of all files at and below the sources.

    Among them is the recipe itself: the file of the code that makes the folder.
    """
    state = hashlib.sha256()
    for source in sources:
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if file.is_file() and file.suffix != ".pyc":
                content = file.read_bytes()
                name = file.relative_to(source.parent)
                state.update(f"{name} {len(content)}\n".encode() + content)
    return state.hexdigest()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make a folder, and what it takes to make it."""
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
