"""Which schema an item was written under, and what code does that is older than an item.

Each item that is read by itself says so in `v`: RUN, SUMMARY, TENANT, APIKEY, INVOCATION. The other
items of a run are read only after its RUN, which speaks for them: code of a newer schema raises
`v` of a RUN before it writes to that run anything that older code cannot read.
"""

from collections.abc import Mapping
from typing import Any, Final

from functions.core import keys
from functions.core.errors import NewerSchema

SCHEMA_VERSION: Final = 1
VERSION: Final = "v"


def version_of(item: Mapping[str, Any]) -> int:
    """An item that does not say was written under the first."""
    return int(item.get(VERSION, 1))


def refuse_newer(item: Mapping[str, Any]) -> None:
    """Raises NewerSchema for an item that this code may misread."""
    found = version_of(item)
    if found > SCHEMA_VERSION:
        what = item.get(keys.SORT, "an item")
        raise NewerSchema(
            f"{what} was written under schema {found}, this version reads up to {SCHEMA_VERSION}"
        )
