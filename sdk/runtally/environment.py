"""Settings from the environment."""

import os


def required(*names: str) -> list[str]:
    """The values of these variables. Raises ValueError that names what is missing."""
    values = {name: os.environ.get(name, "") for name in names}
    if missing := [name for name, value in values.items() if not value]:
        raise ValueError(f"not set in the environment: {', '.join(missing)}")
    return list(values.values())


def optional(name: str) -> str | None:
    return os.environ.get(name) or None
