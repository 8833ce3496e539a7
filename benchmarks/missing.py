"""What a benchmark cannot do without."""

import shutil
from pathlib import Path


class NotHere(Exception):  # noqa: N818 - the fact
    """The machine lacks something; says what, and how to bring it."""


def tool(name: str, package: str) -> Path:
    """Where a program is. Raises NotHere, with the Debian package that has it."""
    found = shutil.which(name)
    if found is None:
        raise NotHere(f"{name} is not installed: apt-get install {package}")
    return Path(found)
