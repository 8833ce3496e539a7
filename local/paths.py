"""Where things lie in this project. Whatever is made while running goes below build/."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build"
LOGS: Final = BUILD / "logs"
STATE: Final = Path(os.environ.get("RUNTALLY_LOCAL_STATE", BUILD / "local-stage.json"))
"""What `runtally up` left running; another file is another stage beside it."""
NODE_MODULES: Final = ROOT / "node_modules"
CDK: Final = NODE_MODULES / ".bin" / "cdk"
RECORDINGS: Final = ROOT / "local" / "samples" / "recordings"
LAKE: Final = Path("runtally-lake")
"""What `export` writes and `query` reads unless told otherwise: in the folder where one stands."""


def cache() -> Path:
    """What can be brought again: where this user keeps such files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runtally"
