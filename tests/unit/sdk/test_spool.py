import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from runtally.cuts import Sealed
from runtally.spool import Spool, SpoolFull


def read_all(spool: Spool) -> list[Sealed | None]:
    return [spool.read(path) for path in spool.waiting()]


def test_messages_wait_in_the_order_in_which_they_were_put(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "made" / "for it")
    messages = [Sealed(b"%d" % number, number) for number in range(1, 12)]
    for message in messages:
        spool.put(message)
    assert read_all(spool) == messages
    assert read_all(Spool(spool.directory)) == messages
    assert spool.counts() == (11, 66)


def test_a_spool_that_nobody_used_is_empty(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "none")
    assert (spool.waiting(), spool.counts()) == ([], (0, 0))


def test_what_another_process_took_is_gone_without_complaint(tmp_path: Path) -> None:
    mine, other = Spool(tmp_path), Spool(tmp_path)
    path = mine.put(Sealed(b"1", 1))
    other.remove(path)
    assert mine.read(path) is None
    mine.remove(path)


def test_what_is_removed_makes_room(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=10)
    path = spool.put(Sealed(b"12345678", 1))
    with pytest.raises(SpoolFull):
        spool.put(Sealed(b"123", 1))
    spool.remove(path)
    spool.put(Sealed(b"123", 1))
    assert read_all(spool) == [Sealed(b"123", 1)]


def test_room_counts_what_other_processes_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtally.spool._LOOK_AGAIN_S", 0)
    mine, other = Spool(tmp_path, max_bytes=10), Spool(tmp_path, max_bytes=10)
    path = mine.put(Sealed(b"12345", 1))
    other.put(Sealed(b"12345", 1))
    with pytest.raises(SpoolFull):
        mine.put(Sealed(b"1", 1))
    other.remove(path)
    mine.put(Sealed(b"1", 1))


def test_files_that_are_not_whole_are_never_read_and_cleaned_when_they_are_old(
    tmp_path: Path,
) -> None:
    new, old = (tmp_path / f"{name}.1.message.tmp" for name in ("new", "old"))
    for path in (new, old):
        path.write_bytes(b"half")
    two_hours_ago = time.time() - 7_200
    os.utime(old, (two_hours_ago, two_hours_ago))
    spool = Spool(tmp_path)
    spool.put(Sealed(b"1", 1))
    assert read_all(spool) == [Sealed(b"1", 1)]
    assert new.exists()
    assert not old.exists()


def test_a_put_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError("disk full, for the test")

    spool = Spool(tmp_path)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="disk full"):
        spool.put(Sealed(b"1", 1))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_removed_is_made_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.remove(spool.put(Sealed(b"1", 1)))
    spool.directory.rmdir()
    spool.put(Sealed(b"2", 1))
    assert read_all(spool) == [Sealed(b"2", 1)]


KILLED = """
import os, sys
from pathlib import Path
from runtally.cuts import Sealed
from runtally.spool import Spool

spool = Spool(Path(sys.argv[1]))
spool.put(Sealed(b"whole", 1))
os.fsync = lambda _: os._exit(9)
spool.put(Sealed(b"torn", 1))
"""


def test_a_killed_process_leaves_whole_messages_to_the_next(tmp_path: Path) -> None:
    killed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)], check=False
    )
    assert killed.returncode == 9
    assert len(list(tmp_path.iterdir())) == 2
    assert read_all(Spool(tmp_path)) == [Sealed(b"whole", 1)]
