# Made from ../aio by `python -m tools.blocking`: change it there.
"""Small values that the workers of a run hand to each other."""

from typing import TYPE_CHECKING

from runtally.coordination import requests

if TYPE_CHECKING:
    from runtally.coordination.blocking.coordinator import RunState


class Scratchpad:
    """Values of up to 1 MiB by name; text is written as UTF-8. Each raises TooLong, Unavailable and
    StateLost: what is not written is never said to be."""

    def __init__(self, state: "RunState") -> None:
        self._state = state

    def get(self, name: str) -> requests.Value | None:
        return self._state.ask(requests.get(_name(name)))

    def set(self, name: str, data: str | bytes) -> str:
        """Write it, whatever was there; the version that it has now."""
        return self._state.ask(requests.set_value(_name(name), data))

    def append(self, name: str, data: str | bytes) -> int:
        """Add to the end, as one step among those of all workers; its length in bytes."""
        return self._state.ask(requests.append(_name(name), data))

    def compare_and_set(self, name: str, data: str | bytes, *, version: str | None) -> str | None:
        """Write it if its version is still this one (None: if there is no value yet).

        The new version; None when somebody else was there first, and nothing is changed.
        """
        return self._state.ask(requests.compare_and_set(_name(name), data, version))

    def delete(self, name: str) -> None:
        self._state.ask(requests.delete(_name(name)))


def _name(name: str) -> str:
    return requests.name_of("scratchpad", name)
