"""Write the price table of the library from the data inside the installed genai-prices.

    python -m tools.prices

The same package gives the same bytes. What a step has no count for is left out: tokens of audio,
images and video (charged as text, like everything that is not told apart), searches, cache writes
that live for an hour, prices of service tiers.
"""

import re
import tomllib
from datetime import time
from decimal import Decimal
from importlib import metadata
from typing import Final

import msgspec
from genai_prices import types
from genai_prices.data import providers
from msgspec import Raw

from local.paths import ROOT
from runtally.prices import table
from runtally.prices.table import Model, Period, Provider, Rate, Rates, Table

_PACKAGE: Final = "genai-prices"


def made() -> bytes:
    """The table as it is written: JSON, one model a line, so that a change can be read."""
    table_made = Table(_name(), [_provider(provider) for provider in providers])
    return msgspec.json.encode(table_made) + b"\n"


def _name() -> str:
    version = metadata.version(_PACKAGE)
    return f"{_PACKAGE} {version} {_released(version)}"


def _released(version: str) -> str:
    """The day of the release, which is how old its prices are at least. Only the lock knows it."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    for package in lock["package"]:
        if (package["name"], package.get("version")) == (_PACKAGE, version):
            return str(package["sdist"]["upload-time"])[:10]
    raise SystemExit(f"{_PACKAGE} {version} is installed, but not what uv.lock says")


def _provider(provider: types.Provider) -> Provider:
    return Provider(
        id=provider.id,
        names=_patterns(provider.provider_match),
        makes=_patterns(provider.model_match),
        resells=provider.fallback_model_providers or [],
        models=Raw(_lines([_model(model) for model in provider.models])),
    )


def _model(model: types.ModelInfo) -> Model:
    prices = model.prices
    dated = prices if isinstance(prices, list) else [types.ConditionalPrice(prices=prices)]
    free = "free" in model.id
    return Model(
        _patterns(model.match),
        [Period(_when(each.constraint), _rates(each.prices, free=free)) for each in dated],
    )


def _rates(price: types.ModelPrice, *, free: bool) -> Rates:
    """A price without any rate is a free model there, and also one whose price is not known; it is
    taken for free only where the model's id says so.
    """
    if free and not any(vars(price).values()):
        return Rates(Decimal(0), Decimal(0))
    return Rates(
        _rate(price.input_mtok),
        _rate(price.output_mtok),
        _rate(price.cache_read_mtok),
        _rate(price.cache_write_mtok),
        _rate(price.output_reasoning_mtok),
        _flat(price.requests_kcount),
    )


def _rate(price: Decimal | types.TieredPrices | None) -> Rate | None:
    if isinstance(price, types.TieredPrices):
        return [(0, price.base), *((tier.start, tier.price) for tier in price.tiers)]
    return price


def _flat(price: Decimal | types.TieredPrices | None) -> Decimal | None:
    if isinstance(price, types.TieredPrices):
        raise TypeError("the table has no tiers for requests")
    return price


def _when(constraint: object) -> str | None:
    match constraint:
        case None:
            return None
        case types.StartDateConstraint(start_date=day):
            return day.isoformat()
        case types.TimeOfDateConstraint(start_time=start, end_time=end):
            return f"{_minute(start)}-{_minute(end)}"
    raise TypeError(f"the table has no place for {constraint!r}")


def _minute(moment: time) -> str:
    if moment.second or moment.microsecond or moment.utcoffset():
        raise ValueError(f"the table knows minutes of UTC, not {moment!r}")
    return f"{moment:%H:%M}"


def _patterns(logic: types.MatchLogic | None) -> list[str]:
    if logic is None:
        return []
    clauses = logic.or_ if isinstance(logic, types.ClauseOr) else [logic]
    return list(dict.fromkeys(_pattern(clause) for clause in clauses))


def _pattern(clause: types.MatchLogic) -> str:
    match clause:
        case types.ClauseEquals(equals=text):
            return _literal(text)
        case types.ClauseStartsWith(starts_with=text):
            return f"{_literal(text)}*"
        case types.ClauseEndsWith(ends_with=text):
            return f"*{_literal(text)}"
        case types.ClauseContains(contains=text):
            return f"*{_literal(text)}*"
        case types.ClauseRegex() | types.ClauseAnd() | types.ClauseOr():
            return f"{table.EXPRESSION}{_expression(clause)}"
    raise TypeError(f"the table has no place for {clause!r}")


def _literal(text: str) -> str:
    if not text or "*" in text or text.startswith(table.EXPRESSION):
        raise ValueError(f"{text!r} would be read as a pattern")
    return text.lower()


def _expression(clause: types.MatchLogic) -> str:
    """The clause as a regular expression to search for."""
    match clause:
        case types.ClauseRegex(regex=expression):
            return expression
        case types.ClauseAnd(and_=clauses):
            return "^" + "".join(f"(?=.*?(?:{_expression(each)}))" for each in clauses)
        case types.ClauseOr(or_=clauses):
            return "|".join(f"(?:{_expression(each)})" for each in clauses)
    pattern = _pattern(clause)
    start = "" if pattern.startswith("*") else "^"
    end = "" if pattern.endswith("*") else r"\Z"
    return f"{start}{re.escape(pattern.strip('*'))}{end}"


def _lines(models: list[Model]) -> bytes:
    encoded = [msgspec.json.encode(_trimmed(msgspec.to_builtins(model))) for model in models]
    return b"[\n" + b",\n".join(encoded) + b"\n]"


def _trimmed(value: object) -> object:
    """Lists without the nulls at their end: fields of a list have those as their defaults."""
    if not isinstance(value, list):
        return value
    trimmed = [_trimmed(each) for each in value]
    while trimmed and trimmed[-1] is None:
        trimmed.pop()
    return trimmed


if __name__ == "__main__":
    table.PATH.write_bytes(made())
    print(f"{table.PATH.relative_to(ROOT)}: {_name()}")  # noqa: T201 - its output
