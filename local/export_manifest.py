"""What a folder holds of which runs, and as of which state: how an export knows what to skip.

A power cut may cost what was settled last, never more: files are on the disk before the line that
says so is written, and a line that cannot be read any more is none.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Final, Literal, NamedTuple, Self

import msgspec
from msgspec import Meta, Struct

from functions.core.keys import RunRef
from local import file_names
from local.commands import LocalStageError
from local.locks import lock_now

type Format = Literal["parquet", "jsonl"]

_FILE: Final = "export-manifest.jsonl"
_RUNS_AT_ONCE: Final = 50
"""To wait for the disk takes as long as to write a small run; for many files at once, hardly
longer."""
_FILES_AT_ONCE: Final = 16


class SameFile(ValueError):  # noqa: N818 - the fact
    """The folder's file system does not tell the run's files from those of another."""


class Entry(Struct, frozen=True):
    """`state` is what the run's files were made from; None while they may not be whole or final.
    `calls` is how many they have; what an older version noted does not say it."""

    tenant_id: str
    run_id: str
    format: Format
    day: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    state: str | None
    calls: int = 0


class _Key(NamedTuple):
    ref: RunRef
    format: Format


class Manifest:
    """A line an entry; of a run's entries in a format, the last one counts."""

    def __init__(self, file: IO[bytes], *, folds_case: bool = False) -> None:
        self._file = file
        self._folds_case = folds_case
        self._entries: dict[_Key, Entry] = {}
        self._spelled: dict[str, str] = {}
        self._written: dict[_Key, tuple[Entry, Sequence[Path]]] = {}
        for entry in _readable_lines(file):
            self._keep(entry)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Self]:
        """The folder's, made with it when there is none, for one process at a time.

        Raises LocalStageError while another one exports into the folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _FILE).open("a+b") as file:
            if not lock_now(file, "exclusive"):
                failed = f"Another export is writing into {folder}."
                raise LocalStageError(failed, "Wait for it, or give another `--into`.")
            manifest = cls(file, folds_case=file_names.folds_case(folder))
            try:
                yield manifest
            finally:
                manifest.settle_all()

    def entry(self, ref: RunRef, format_: Format) -> Entry | None:
        """What is noted of the run. Raises SameFile where files of it would be another run's."""
        for name in _names(ref) if self._folds_case else ():
            other = self._spelled.get(name.lower(), name)
            if other != name:
                raise SameFile(
                    f"for this file system it is {other}, which is there:"
                    " export it to a folder of its own, with `--into`"
                )
        key = _Key(ref, format_)
        if key in self._written:
            self.settle_all()
        return self._entries.get(key)

    def entries_of(self, tenant_id: str) -> list[Entry]:
        """What is noted of the tenant's runs, in every format."""
        return [each for each in self._entries.values() if each.tenant_id == tenant_id]

    def note(self, entry: Entry) -> None:
        """Say that there may be files of the run, before there are."""
        self._keep(entry)
        self._write([entry])

    def settle(self, entry: Entry, files: Sequence[Path]) -> None:
        """Say that these files are the run's, once they are sure to be on the disk: with others."""
        self._written[_key(entry)] = (entry, files)
        if len(self._written) >= _RUNS_AT_ONCE:
            self.settle_all()

    def settle_all(self) -> None:
        settled, self._written = list(self._written.values()), {}
        if not settled:
            return
        files = [file for _, of_run in settled for file in of_run]
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            list(pool.map(_sync, [*files, *{file.parent for file in files}]))
        for entry, _ in settled:
            self._keep(entry)
        self._write([entry for entry, _ in settled])

    def _keep(self, entry: Entry) -> None:
        key = _key(entry)
        self._entries[key] = entry
        for name in _names(key.ref):
            self._spelled.setdefault(name.lower(), name)

    def _write(self, entries: Sequence[Entry]) -> None:
        self._file.write(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
        self._file.flush()
        os.fsync(self._file)


def _readable_lines(file: IO[bytes]) -> Iterator[Entry]:
    """What a process that was killed left of its last line is cut off."""
    file.seek(0)
    whole = 0
    for line in file:
        if not line.endswith(b"\n"):
            file.truncate(whole)
            return
        whole += len(line)
        try:
            yield msgspec.json.decode(line, type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # the run is written again


def _sync(path: Path) -> None:
    """A folder's names, too. What has been moved or removed meanwhile is looked for next time."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _key(entry: Entry) -> _Key:
    return _Key(RunRef(entry.tenant_id, entry.run_id), entry.format)


def _names(ref: RunRef) -> tuple[str, str]:
    """Of the tenant's folders, and of the run's files in them."""
    return ref.tenant_id, f"{ref.tenant_id}/{ref.run_id}"
