"""Which prices a call falls under, by what traces say of it: a model id, and something that may be
the name of a provider.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timezone
from functools import cache, lru_cache
from typing import Final

from runtally.prices import table
from runtally.prices.table import Model, Period, Provider, Rates

# Longer names are nobody's; kept by the thousand, they would fill the memory.
_LONGEST_NAME: Final = 256

# Where OpenTelemetry, or a framework, says a name that the table does not have:
# https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/
_OTHER_NAMES: Final = {
    "*azure*": "azure",
    "az.*": "azure",
    "gcp.gen_ai": "google",
    "x_ai": "x-ai",
    "fireworks*": "fireworks",
}
# Serve models of others at prices that the table does not know, or at none.
_ELSEWHERE: Final = (
    "*ollama*",
    "*vllm*",
    "*llama.cpp*",
    "*llamafile*",
    "*lmstudio*",
    "*lm_studio*",
    "*sagemaker*",
    "*watsonx*",
)
# An ARN, `us.anthropic.claude-…`: nobody but Bedrock has such ids, whatever provider is named.
_BEDROCK_ID: Final = re.compile(r"(?:^|/)(?:arn:aws|(?:[a-z-]+\.)?[a-z0-9]+\.[a-z])")
_COMPACT_DATE: Final = re.compile(r"-(20\d\d)(\d\d)(\d\d)(?=-|:|$)")


class Shelf:
    """The models of one provider. A name that fits several of them means the first."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models
        self._by_name: dict[str, int] = {}
        self._patterns: list[tuple[int, str]] = []
        for position, model in enumerate(models):
            for pattern in model.names:
                if table.is_name(pattern):
                    self._by_name.setdefault(pattern, position)
                else:
                    self._patterns.append((position, pattern))

    def find(self, name: str) -> Model | None:
        exact = self._by_name.get(name, len(self._models))
        for position, pattern in self._patterns:
            if position >= exact:
                break
            if table.matches(pattern, name):
                return self._models[position]
        return self._models[exact] if exact < len(self._models) else None


def periods_of(model: str, provider: str | None) -> Sequence[Period]:
    """All prices of the model, in the table's order; none when it is not known.

    Bedrock's for an id that only Bedrock has. Else the provider's own, if it is one and sells the
    model; else those of the provider that the id itself names (`openai/gpt-4o`); else those of the
    model's maker. What was found, or not, is kept for the next thousand names.
    """
    if len(model) > _LONGEST_NAME or len(provider or "") > _LONGEST_NAME:
        return ()
    return _found(model, provider)


@lru_cache(maxsize=1024)
def _found(model: str, provider: str | None) -> Sequence[Period]:
    name, host = model.strip().lower(), (provider or "").strip().lower()
    if _elsewhere(name, host):
        return ()
    for seller, ref in _candidates(name, host):
        for spelled in dict.fromkeys((ref, _with_dashes(ref))):
            if found := _listed(seller, spelled):
                return found.periods
    return ()


def rates_at(periods: Sequence[Period], at: int) -> Rates:
    """The rates that hold at a time, in nanoseconds since the epoch."""
    if len(periods) > 1:
        moment = datetime.fromtimestamp(at // 10**9, timezone.utc)
        for period in reversed(periods):
            if _holds(period.when, moment):
                return period.rates
    return periods[0].rates


def _holds(when: str | None, moment: datetime) -> bool:
    if when is None:
        return True
    if ":" not in when:
        return moment.date().isoformat() >= when
    start, _, end = when.partition("-")
    time = f"{moment:%H:%M}"
    return start <= time < end if start <= end else time >= start or time < end


def _elsewhere(name: str, host: str) -> bool:
    prefix, slash, _ = name.partition("/")
    return table.matches_any(_ELSEWHERE, host) or (
        bool(slash) and table.matches_any(_ELSEWHERE, prefix)
    )


def _candidates(name: str, host: str) -> Iterator[tuple[Provider, str]]:
    if _BEDROCK_ID.search(name):
        yield _providers()["aws"], name
    if seller := _provider(host):
        yield seller, name
    prefix, _, rest = name.partition("/")
    if rest and (seller := _provider(prefix)):
        yield seller, rest
    for maker in table.load().providers:
        if table.matches_any(maker.makes, name):
            yield maker, name
            return


def _provider(host: str) -> Provider | None:
    if found := _providers().get(host):
        return found
    for pattern, provider_id in _OTHER_NAMES.items():
        if table.matches(pattern, host):
            return _providers()[provider_id]
    for provider in table.load().providers:
        if table.matches_any(provider.names, host):
            return provider
    return None


@cache
def _providers() -> dict[str, Provider]:
    return {provider.id: provider for provider in table.load().providers}


def _listed(seller: Provider, name: str) -> Model | None:
    """What the seller calls so, or one of those whose models it resells."""
    for provider_id in (seller.id, *seller.resells):
        if found := _shelf(provider_id).find(name):
            return found
    return None


@cache
def _shelf(provider_id: str) -> Shelf:
    return Shelf(table.models_of(_providers()[provider_id]))


def _with_dashes(name: str) -> str:
    """`gpt-5.2-20251211` as `gpt-5.2-2025-12-11`, which is how prices are listed."""

    def dashed(match: re.Match[str]) -> str:
        try:
            return f"-{date(int(match[1]), int(match[2]), int(match[3])).isoformat()}"
        except ValueError:
            return match[0]

    return _COMPACT_DATE.sub(dashed, name)
