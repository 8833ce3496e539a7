"""The embedded AWS as a process: it is there when it says so, and gone when it should be."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from local import waiting
from local.emulator import Emulator, answers
from local.process_group import group_lives

pytestmark = pytest.mark.xdist_group("emulator")


def test_two_run_beside_each_other_as_different_accounts_users_and_leave_nothing() -> None:
    with Emulator() as one, Emulator() as other:
        assert answers(one.access.endpoint)
        assert answers(other.access.endpoint)
        assert one.access.endpoint != other.access.endpoint
        assert one.access.access_key_id != other.access.access_key_id
    for emulator in (one, other):
        assert not group_lives(emulator.pid)
        assert not answers(emulator.access.endpoint)
        assert not emulator.folder.exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_started_it(how: signal.Signals) -> None:
    program = (
        "import signal; from local.emulator import Emulator; emulator = Emulator();"
        "print(emulator.pid, emulator.folder, flush=True); signal.pause()"
    )
    owner = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert group_lives(int(pid))
        os.kill(owner.pid, how)
    waiting.until(lambda: None if group_lives(int(pid)) else True, 10, "The emulator did not end")
    shutil.rmtree(folder)
