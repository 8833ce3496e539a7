"""Which names are one name to the file system of a folder: ids differ in case, files may not."""

import tempfile
from collections.abc import Iterable
from pathlib import Path


def folds_case(folder: Path) -> bool:
    """Whether `A` and `a` are one file there, as mostly on macOS and Windows. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".case-") as file:
        return Path(folder, Path(file.name).name.upper()).exists()


def alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Two of these names that differ in case alone, if there are any."""
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(name.lower(), name)
        if other != name:
            return other, name
    return None
