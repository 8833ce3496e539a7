"""The cache of a lake: whoever asks has, of each run, the files of one time, whoever else asks."""

import fcntl
import io
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from rich.console import Console

from functions.core import lake
from functions.core.keys import RunRef
from local import lake_cache, locks
from local.lake_cache import LakeUrl, Scope, brought
from tests.fakes.s3 import MemoryS3

URL = LakeUrl("b", "lake/")
EVERYTHING = Scope()
DAYS = ("2026-11-29", "2026-11-30")


def key(day: str) -> str:
    return f"lake/{lake.place_of(lake.RUNS, RunRef('acme', 'run-1'), day)}.parquet"


def move(s3: MemoryS3) -> None:
    """To where the run turns out to have begun."""
    s3.objects = {key(DAYS[0]): b"moved"}


@pytest.fixture
def s3() -> MemoryS3:
    s3 = MemoryS3()
    s3.objects[key(DAYS[1])] = b"first"
    return s3


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is said to those who wait, at once."""
    told = io.StringIO()
    monkeypatch.setattr(locks, "console", Console(file=told))
    monkeypatch.setattr(locks, "_TOLD_AFTER_S", 0)
    return told


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*.parquet")]


class Other(Thread):
    """Another question, of these files."""

    def __init__(self, s3: MemoryS3, cache: Path, scope: Scope = EVERYTHING) -> None:
        super().__init__(daemon=True)
        self._asked = (s3, URL, scope, cache)
        self.found: list[bytes] = []

    def run(self) -> None:
        client, *where = self._asked
        with brought(client, *where) as folder:  # type: ignore[arg-type]
            self.found = contents(folder)

    def waits(self, told: io.StringIO) -> bool:
        """Whether it comes to wait, rather than to its end."""
        while self.is_alive():
            if "Waiting for another" in told.getvalue():
                return True
            self.join(0.01)
        return False


@pytest.mark.timeout(30)
def test_what_another_one_brings_waits_until_this_one_has_brought_and_asked(
    s3: MemoryS3, tmp_path: Path, told: io.StringIO
) -> None:
    other = Other(s3, tmp_path)
    waited: list[bool] = []

    def meanwhile(call: str, when: str) -> None:
        if (call, when) == ("s3.get_object", "after"):
            s3.calls.hook = lambda *_: None
            move(s3)
            other.start()
            waited.append(other.waits(told))

    s3.calls.hook = meanwhile
    with brought(s3, URL, EVERYTHING, tmp_path) as folder:  # type: ignore[arg-type]
        assert waited == [True]
        assert contents(folder) == [b"first"]
    other.join()
    assert other.found == [b"moved"]


@pytest.mark.timeout(30)
def test_files_stay_while_they_are_asked(s3: MemoryS3, tmp_path: Path, told: io.StringIO) -> None:
    other = Other(s3, tmp_path)
    with brought(s3, URL, EVERYTHING, tmp_path) as folder:  # type: ignore[arg-type]
        move(s3)
        other.start()
        assert other.waits(told)
        assert contents(folder) == [b"first"]
    other.join()
    assert other.found == [b"moved"]


@pytest.mark.timeout(30)
def test_questions_that_need_nothing_new_are_asked_at_once(
    s3: MemoryS3, tmp_path: Path, told: io.StringIO
) -> None:
    other = Other(s3, tmp_path)
    with brought(s3, URL, EVERYTHING, tmp_path):  # type: ignore[arg-type]
        other.start()
        assert not other.waits(told)
    assert other.found == [b"first"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize("scope", [EVERYTHING, Scope(None, DAYS[0], DAYS[0])])
def test_a_run_counts_once_when_another_question_comes_between_two_locks(
    s3: MemoryS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int, scope: Scope
) -> None:
    """As it may when a lock changes its kind. The run moves, and the other one asks for the day to
    which it moves."""
    real: Callable[..., None] = locks.lock
    turns = iter(range(1, 100))

    def lock(file: io.IOBase, kind: locks.Kind, waiting: str) -> None:
        if next(turns) == turn:
            fcntl.flock(file, fcntl.LOCK_UN)
            monkeypatch.setattr(lake_cache, "lock", real)
            move(s3)
            other = Other(s3, tmp_path, scope)
            other.start()
            other.join()
            monkeypatch.setattr(lake_cache, "lock", lock)
        real(file, kind, waiting)

    monkeypatch.setattr(lake_cache, "lock", lock)
    with brought(s3, URL, EVERYTHING, tmp_path) as folder:  # type: ignore[arg-type]
        assert contents(folder) == [b"moved"]


def test_no_scope_reaches_files_of_others(s3: MemoryS3, tmp_path: Path) -> None:
    with brought(s3, URL, EVERYTHING, tmp_path) as folder:  # type: ignore[arg-type]
        pass
    for tenant in ("a*", "*", "acm?", "[a]cme"):
        with brought(s3, URL, Scope(tenant), tmp_path):  # type: ignore[arg-type]
            assert contents(folder) == [b"first"]
