"""Reading attributes by the rows of a table, in one pass: spans have few, the table has many."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runtally.otel.spans import Attributes


class Rows:
    """A table of names, the best of each row first."""

    def __init__(self, rows: Mapping[str, Sequence[str]]) -> None:
        self._places: dict[str, list[tuple[str, int]]] = {}
        for row, names in rows.items():
            for rank, name in enumerate(names):
                self._places.setdefault(name, []).append((row, rank))

    def find(self, attributes: Attributes) -> dict[str, str]:
        """By row, the best name that has a value; rows without any are left out."""
        best: dict[str, tuple[int, str]] = {}
        for name in attributes.keys() & self._places.keys():
            if is_empty(attributes[name]):
                continue
            for row, rank in self._places[name]:
                if row not in best or rank < best[row][0]:
                    best[row] = rank, name
        return {row: name for row, (_, name) in best.items()}

    def read(self, attributes: Attributes) -> dict[str, Any]:
        """By row, the value under the best name."""
        return {row: attributes[name] for row, name in self.find(attributes).items()}


def first_of(attributes: Attributes, names: Iterable[str]) -> Any:
    """The value of the first attribute that has one; None without."""
    return next((v for name in names if not is_empty(v := attributes.get(name))), None)


def is_empty(value: Any) -> bool:
    """Whether a value says nothing; 0 and False do."""
    return value is None or value in ("", [])
