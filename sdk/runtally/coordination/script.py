"""The one script, and the name under which a server keeps it."""

import hashlib
from importlib.resources import files
from typing import Final

SCRIPT: Final = files(__package__).joinpath("coordination.lua").read_text(encoding="utf-8")
SHA1: Final = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
