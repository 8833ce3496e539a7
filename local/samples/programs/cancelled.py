"""A run that its user cancels in the middle. Shows `cancelled` steps and run, nothing swallowed.

Two watchers wait for a file that never comes; a third finds its own. The user, here a line of code,
cancels when the two are waiting: asyncio raises CancelledError in them, and so up to the run.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from local.samples.scripted_model import ScriptedModel
from runtally import Recorder, Run

PIPELINE = "cancelled"
WANTED = ("ready.txt", "late.txt", "never.txt")


def main(recorder: Recorder) -> None:
    asyncio.run(start_and_cancel(recorder))


async def start_and_cancel(recorder: Recorder) -> None:
    waiting = asyncio.Semaphore(0)
    work = asyncio.create_task(watch_all(recorder, waiting))
    for _ in WANTED[1:]:
        await waiting.acquire()
    work.cancel("the user pressed stop")
    with suppress(asyncio.CancelledError):
        await work


async def watch_all(recorder: Recorder, waiting: asyncio.Semaphore) -> None:
    async with recorder.run(pipeline=PIPELINE, attributes={"wanted": list(WANTED)}) as run:
        ScriptedModel(lambda _: "Watch the folder.").ask(run, "What now?", phase="plan")
        with TemporaryDirectory() as folder:
            (Path(folder) / WANTED[0]).write_text("here")
            run.log(f"watching for {', '.join(WANTED)}")
            watchers = (watch(run, Path(folder) / name, waiting) for name in WANTED)
            run.result = await asyncio.gather(*watchers)


async def watch(run: Run, path: Path, waiting: asyncio.Semaphore) -> str:
    """The tool: the text of a file, once it is there."""
    async with run.step(f"wait for {path.name}", phase="watch", kind="tool") as step:
        if not path.exists():
            waiting.release()
            await asyncio.Event().wait()  # as long as it takes
        text = path.read_text()
        step.set(payload={"path": path.name, "text": text})
    return text


if __name__ == "__main__":
    with Recorder.from_environment() as to_queue:
        main(to_queue)
