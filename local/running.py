"""Starting a stage that stays, finding it again, and ending it."""

import shutil

from local.deploy import deploy
from local.emulator import Emulator, answers
from local.paths import STATE
from local.process_group import kill_group
from local.progress import doing
from local.stage import Running, Stage


def bring_up(*, auth: bool = False) -> tuple[Running, bool]:
    """The running stage, and whether it was started for that; nothing stays when that fails."""
    running = find_running()
    if running is not None:
        return running, False
    bring_down()
    with doing("Start the embedded AWS"):
        emulator = Emulator(auth=auth, detached=True)
    try:
        running = Running(deployed(emulator), emulator.access, emulator.pid, emulator.folder)
        running.save(STATE)
    except BaseException:
        emulator.stop()
        raise
    return running, True


def deployed(emulator: Emulator) -> Stage:
    with doing("Build the functions and deploy the stacks"):
        return deploy(emulator)


def find_running() -> Running | None:
    running = Running.load(STATE)
    return running if running and answers(running.access.endpoint) else None


def bring_down() -> bool:
    """End the stage that was left running, and remove its traces; whether there was one."""
    running = Running.load(STATE)
    if running is None:
        return False
    # Process ids are given anew: only what answers as the emulator is ended.
    alive = answers(running.access.endpoint)
    if alive:
        kill_group(running.pid)
    shutil.rmtree(running.folder, ignore_errors=True)
    STATE.unlink()
    return alive
