"""The recorded runs that the project ships, and the agent programs that made them.

A program is an example to read and copy: real tools, a scripted model, one `Recorder`. Its
recording is what it sent, message by message; `python -m local.samples` makes all of them again.
"""

from importlib import import_module
from pathlib import Path
from typing import Final

from local.paths import RECORDINGS
from runtally import FileSender, Recorder

__all__ = ["PROGRAMS", "RECORDINGS", "record"]

PROGRAMS: Final = ("research", "bugfix", "translate_cjk", "wide", "nested", "cancelled")


def record(program: str, folder: Path) -> Path:
    """Run a program and keep what it sends in `folder`, in place of an older recording."""
    path = folder / f"{program}.jsonl.gz"
    unfinished = folder / f"{program}.unfinished.jsonl.gz"
    unfinished.unlink(missing_ok=True)
    with Recorder(tenant_id="demo", sender=FileSender(unfinished), on_loss="raise") as recorder:
        import_module(f"local.samples.programs.{program}").main(recorder)
    return unfinished.replace(path)
