"""Ending a process together with what it started."""

import subprocess
import sys

from local.process_group import group_lives, kill_group

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_the_children_end_with_their_parent() -> None:
    parent = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True
    )
    with parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        assert group_lives(parent.pid)
        kill_group(parent.pid)
        # The pipe is the children's too: it ends when the last of them is gone.
        assert parent.stdout.read() == b""
    assert not group_lives(parent.pid)
    kill_group(parent.pid)


def test_children_that_outlive_their_parent_are_found_and_ended() -> None:
    program = PARENT.removesuffix("time.sleep(600)\n")
    parent = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    with parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.wait(30)
        assert group_lives(parent.pid)
        kill_group(parent.pid)
        assert parent.stdout.read() == b""
