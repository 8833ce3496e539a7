"""Settings from the environment."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtally.redaction import Redact


def required(*names: str) -> list[str]:
    """The values of these variables. Raises ValueError that names what is missing."""
    values = {name: os.environ.get(name, "") for name in names}
    if missing := [name for name, value in values.items() if not value]:
        raise ValueError(f"not set in the environment: {', '.join(missing)}")
    return list(values.values())


def optional(name: str) -> str | None:
    return os.environ.get(name) or None


def seconds(name: str, otherwise: float) -> float:
    """A number of seconds. Raises ValueError for what is none."""
    text = optional(name)
    try:
        return otherwise if text is None else float(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}: not a number of seconds") from None


def redact() -> "Redact | None":
    """What RUNTALLY_REDACT asks for: nothing, or `rules`. Raises ValueError for anything else."""
    asked = optional("RUNTALLY_REDACT")
    if asked is None:
        return None
    if asked != "rules":
        raise ValueError(f"RUNTALLY_REDACT is {asked!r}: only rules can be asked for that way")
    from runtally import redaction  # noqa: PLC0415 - for those who want it

    return redaction.rules()
