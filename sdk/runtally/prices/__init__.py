"""What a model call costs by list price: `cost_of`.

The prices come from a table in this package, read when the first question is asked. Nothing is
looked up over the network; `Cost.price_table` says how old the table is.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

from runtally import fields
from runtally.prices import lookup, table
from runtally.prices.table import Rate, Rates

__all__ = ["Cost", "cost_of"]

# Ample for every exact sum, and nobody else's context with traps or few digits.
_EXACT: Final = Context(prec=64)
_NOTHING: Final = Decimal(0)
_UNPRICED: Final = Rates()
_MILLION: Final = Decimal(10**6)
_THOUSAND: Final = Decimal(1000)


@dataclass(frozen=True)
class Cost:
    """A computed amount, and by which prices it was computed."""

    usd: str
    """US dollars as the wire format has money: written out, at most 18 decimals."""
    price_table: str
    """Name, version and date of the table: `genai-prices 0.2.3 2026-11-10`."""


def cost_of(  # noqa: PLR0913 - what a call is charged by
    model: str | None,
    provider: str | None,
    *,
    at: int,
    input_tokens: int | None,
    output_tokens: int | None,
    cached_tokens: int | None = None,
    cache_write_tokens: int | None = None,
    reasoning_tokens: int | None = None,
) -> Cost | None:
    """What the call cost at list price, to the last digit; None when that is not known.

    It is not known when the table does not have the model, or no price of it; when a count that has
    a price is missing (`input_tokens` for all models, `output_tokens` for all but embeddings) or a
    count is there that has none; or when the counts contradict each other: negative, or parts
    larger than their whole.
    `cached_tokens` and `cache_write_tokens` are parts of `input_tokens`, `reasoning_tokens` of
    `output_tokens`; missing parts are none. Parts without a price of their own cost what their
    whole costs.

    `at` says, in nanoseconds since the epoch, which of several dated prices hold. The model id
    decides; `provider`, as OpenTelemetry's `gen_ai.provider.name` or `gen_ai.system` says it, only
    helps: it may be missing, or the name of a framework. What a team negotiated, batches, service
    tiers, and tokens that are not text are charged like everything else.
    """
    periods = lookup.periods_of(model, provider) if model else ()
    if not periods:
        return None
    rates = lookup.rates_at(periods, at)
    if rates == _UNPRICED:  # then no tokens have no known price either
        return None
    inputs = _charged(
        input_tokens,
        rates.input,
        (cached_tokens or 0, rates.cached),
        (cache_write_tokens or 0, rates.cache_write),
    )
    outputs = _charged(output_tokens, rates.output, (reasoning_tokens or 0, rates.reasoning))
    if inputs is None or outputs is None:
        return None
    usd = _EXACT.divide(_for_a_million(inputs + outputs, input_tokens or 0), _MILLION)
    if rates.call is not None:
        usd = _EXACT.add(usd, _EXACT.divide(rates.call, _THOUSAND))
    try:
        return Cost(fields.money(usd), table.load().name)
    except ValueError:  # counts of no real call: more than the wire format has digits for
        return None


def _charged(
    whole: int | None, rate: Rate | None, *parts: tuple[int, Rate | None]
) -> list[tuple[int, Rate]] | None:
    """The tokens in lots with the rate that each is charged at; None when that cannot be said."""
    rest = whole or 0
    told_apart = 0
    lots = []
    for size, own in parts:
        if size < 0:
            return None
        told_apart += size
        if own is not None:
            lots.append((size, own))
            rest -= size
    if told_apart > (whole or 0):
        return None
    if rate is None:
        return None if rest else lots
    return None if whole is None else [(rest, rate), *lots]


def _for_a_million(lots: list[tuple[int, Rate]], input_tokens: int) -> Decimal:
    """What a million times as many tokens would cost."""
    usd = _NOTHING
    for size, rate in lots:
        if size:
            usd = _EXACT.fma(size, _in_tier(rate, input_tokens), usd)
    return usd


def _in_tier(rate: Rate, input_tokens: int) -> Decimal:
    if isinstance(rate, list):
        return next((usd for above, usd in reversed(rate) if input_tokens > above), rate[0][1])
    return rate
