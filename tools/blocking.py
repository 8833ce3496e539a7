"""Write the blocking half of `runtally.coordination` from the asynchronous one.

    python -m tools.blocking

`aio/` is written by hand; what waits or connects differs and is written by hand in both.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import unasync  # type: ignore[import-untyped]

from local.paths import ROOT

_PACKAGE: Final = ROOT / "sdk/runtally/coordination"
_MADE: Final = ("__init__.py", "budget.py", "coordinator.py", "scratchpad.py", "slots.py")
_NOTE: Final = "# Made from ../aio by `python -m tools.blocking`: change it there.\n"


def made() -> Iterator[tuple[Path, str]]:
    """Each file that is made, and what it should say."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        shutil.copytree(_PACKAGE / "aio", scratch / "aio")
        rule = unasync.Rule(f"{scratch}/aio/", f"{scratch}/blocking/", {"aio": "blocking"})
        unasync.unasync_files([str(scratch / "aio" / name) for name in _MADE], [rule])
        for name in _MADE:
            file = scratch / "blocking" / name
            file.write_text(_NOTE + file.read_text())
        _format(scratch / "blocking")
        for name in _MADE:
            yield _PACKAGE / "blocking" / name, (scratch / "blocking" / name).read_text()


def _format(folder: Path) -> None:
    settings = f"--config={ROOT / 'sdk/ruff.toml'}"
    ruff = str(Path(sys.executable).with_name("ruff"))
    for command in (["check", "--fix-only", "--quiet", "--select=I"], ["format", "--quiet"]):
        subprocess.run([ruff, *command, settings, str(folder)], check=True)  # noqa: S603 - fixed


def main() -> None:
    for file, text in made():
        file.write_text(text)
        print(f"wrote {file.relative_to(ROOT)}")  # noqa: T201


if __name__ == "__main__":
    main()
