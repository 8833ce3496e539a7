"""What is written in table.json: providers, the models that each one sells, and their prices.

`python -m tools.prices` writes it from the data of genai-prices (MIT,
https://github.com/pydantic/genai-prices); nothing else of that package is needed to read it.

A pattern is a name in lower case. `*` at an end stands for any text there; a regular expression,
searched for, has `re:` before it.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

PATH: Final = Path(__file__).with_name("table.json")
EXPRESSION: Final = "re:"

Rate: TypeAlias = Decimal | list[tuple[int, Decimal]]
"""US dollars for a million tokens. Or such rates, each with the number of input tokens above which
it holds for all tokens of the call; the first holds below that too."""


class Rates(Struct, array_like=True, frozen=True):
    """What the tokens of one call cost; None is a price that the table does not know."""

    input: Rate | None = None
    output: Rate | None = None
    cached: Rate | None = None
    cache_write: Rate | None = None
    reasoning: Rate | None = None
    call: Decimal | None = None
    """US dollars for a thousand calls, on top of the tokens."""


class Period(Struct, array_like=True, frozen=True):
    """Rates and since which day (`2026-08-17`), or at which time of day (`00:30-16:30`), they hold,
    by UTC. Of several that hold the last counts, and if none does the first.
    """

    when: str | None
    rates: Rates


class Model(Struct, array_like=True, frozen=True):
    names: list[str]
    periods: list[Period]


class Provider(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    names: list[str] = []
    """Patterns of other names that it goes by."""
    makes: list[str] = []
    """Patterns of models that are its own, whoever sells them."""
    resells: list[str] = []
    """Ids of providers whose models and prices hold here too, where it has none of its own."""
    models: Raw
    """A list of Model, for `models_of`: nobody asks for the models of all providers."""


class Table(Struct, frozen=True):
    name: str
    providers: list[Provider]


@cache
def load() -> Table:
    """The table, read when it is first asked for."""
    return msgspec.json.decode(PATH.read_bytes(), type=Table)


def models_of(provider: Provider) -> list[Model]:
    """In the order in which they are tried for a name."""
    return msgspec.json.decode(provider.models, type=list[Model])


def matches(pattern: str, name: str) -> bool:
    """Whether a name in lower case is one that the pattern describes."""
    if pattern.startswith(EXPRESSION):
        return re.search(pattern[len(EXPRESSION) :], name) is not None
    text = pattern.strip("*")
    if pattern.startswith("*"):
        return text in name if pattern.endswith("*") else name.endswith(text)
    return name.startswith(text) if pattern.endswith("*") else name == text


def matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(matches(pattern, name) for pattern in patterns)


def is_name(pattern: str) -> bool:
    """Whether a pattern describes one name, itself."""
    return not pattern.startswith((EXPRESSION, "*")) and not pattern.endswith("*")
