"""Starting a stage that stays, finding it again, and ending it."""

import shutil
from dataclasses import replace

from local.deploy import deploy
from local.emulator import Emulator, answers
from local.page import PORT, PageServer
from local.paths import STATE
from local.process_group import kill_group
from local.progress import doing
from local.stage import Running, Stage


def bring_up(*, auth: bool = False, page: bool = True) -> tuple[Running, bool]:
    """The running stage, with its page, and whether it was started for that.

    A page that died is served anew. Nothing is started when a part of it fails.
    """
    found = find_running()
    running = found or _start(auth=auth)
    try:
        return _with_page(running) if page else running, found is None
    except BaseException:
        if found is None:
            bring_down()
        raise


def _start(*, auth: bool) -> Running:
    bring_down()
    with doing("Start the embedded AWS"):
        emulator = Emulator(auth=auth, detached=True)
    try:
        running = Running(deployed(emulator), emulator.access, emulator.pid, emulator.folder)
        running.save(STATE)
    except BaseException:
        emulator.stop()
        raise
    return running


def _with_page(running: Running) -> Running:
    if running.page is not None and running.page.answers():
        return running
    with doing("Build and serve the page"):
        server = PageServer(running.stage.api_url, port=PORT, detached=True)
    running = replace(running, page=server.page)
    running.save(STATE)
    return running


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
    if running.page is not None:
        running.page.end()
    # Process ids are given anew: only what answers as the emulator is ended.
    alive = answers(running.access.endpoint)
    if alive:
        kill_group(running.pid)
    shutil.rmtree(running.folder, ignore_errors=True)
    STATE.unlink()
    return alive
