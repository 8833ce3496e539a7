"""Names that hold a counter or an id, brought down to what they have in common."""

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 1_024
_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
# A run of hex is an id when it is long and holds both kinds of digits.
_HEX: Final = r"\b(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{12,}\b"
_LONG_NUMBER: Final = r"(?<![0-9])[0-9]{6,}(?![0-9])"
_LAST_NUMBER: Final = r"(?<=[-_.:# /])[0-9]+$"
_VARYING: Final = re.compile("|".join((_UUID, _HEX, _LONG_NUMBER, _LAST_NUMBER)))


def grouped(name: str, model: str = "") -> str:
    """The name with `*` for each id and for a counter at its end: `update-13` is `update-*`.

    The version of a model at the end, `chat gpt-5` for `gpt-5-2025-08-07`, is no counter. A name of
    over 1,024 characters stays as it is.
    """
    # Not cut: what redaction is to find in it must be whole.
    return name if len(name) > _LONGEST else _grouped(name, model[:_LONGEST])


@lru_cache(maxsize=1_024)  # a run has few names, and asks for each of them all the time
def _grouped(name: str, model: str) -> str:
    before, _, last = name.rpartition(" ")
    if model and (model.startswith(last) or last.startswith(model)):
        return f"{_VARYING.sub('*', before)} {last}".lstrip()
    return _VARYING.sub("*", name)


def telling(*said: str) -> str:
    """The first name, grouped, that is more than an id; the last where none is."""
    found = [grouped(name) for name in said if name]
    return next((name for name in found if name != "*"), found[-1] if found else "")
