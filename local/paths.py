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
