"""What a folder holds of which runs, and as of which state: how an export knows what to skip."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, Self

import msgspec
from msgspec import Struct

from functions.core.keys import RunRef
from local.commands import LocalStageError

type Format = Literal["parquet", "jsonl"]

_FILE: Final = "export-manifest.jsonl"


class Entry(Struct, frozen=True):
    """`state` is what the run's files were made from; None while they may not be whole or final."""

    tenant_id: str
    run_id: str
    format: Format
    day: str
    state: str | None


class _Key(NamedTuple):
    ref: RunRef
    format: Format


class Manifest:
    """A line an entry; of a run's entries in a format, the last one counts."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._entries: dict[_Key, Entry] = {}
        for entry in _whole_lines(file):
            self._entries[_key(entry)] = entry

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Self]:
        """The folder's, made with it when there is none, for one process at a time.

        Raises LocalStageError while another one exports into the folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _FILE).open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                failed = f"Another export is writing into {folder}."
                raise LocalStageError(failed, "Wait for it, or give another `--into`.") from None
            yield cls(file)

    def entry(self, ref: RunRef, format_: Format) -> Entry | None:
        return self._entries.get(_Key(ref, format_))

    def note(self, entry: Entry) -> None:
        self._file.write(msgspec.json.encode(entry) + b"\n")
        self._file.flush()
        self._entries[_key(entry)] = entry


def _whole_lines(file: IO[bytes]) -> Iterator[Entry]:
    """What a process that was killed left of its last line is cut off."""
    file.seek(0)
    whole = 0
    for line in file:
        if not line.endswith(b"\n"):
            file.truncate(whole)
            return
        whole += len(line)
        yield msgspec.json.decode(line, type=Entry)


def _key(entry: Entry) -> _Key:
    return _Key(RunRef(entry.tenant_id, entry.run_id), entry.format)
