"""Computed costs against genai-prices itself, which the table is made from."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from functools import cache
from typing import NamedTuple

import genai_prices
import msgspec
import pytest
from genai_prices import types
from genai_prices.data import providers
from hypothesis import given
from hypothesis import strategies as st

from runtally import wire
from runtally.prices import Cost, cost_of, lookup, table
from runtally.prices.lookup import Shelf
from tests.unit.sdk.test_imports import loaded_by
from tools import prices as generator

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Counts(NamedTuple):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class Named(NamedTuple):
    """A model by one of its names."""

    provider: str
    model: types.ModelInfo
    name: str


def nanoseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def computed(
    model: str | None, provider: str | None, counts: Counts, at: datetime = NOW
) -> Cost | None:
    return cost_of(model, provider, at=nanoseconds(at), **counts._asdict())


def usd(model: str, provider: str | None, counts: Counts, at: datetime = NOW) -> Decimal | None:
    cost = computed(model, provider, counts, at)
    return Decimal(cost.usd) if cost else None


def oracle(
    model: str, provider: str | None, counts: Counts, at: datetime = NOW
) -> types.PriceCalculation | None:
    usage = genai_prices.Usage(
        input_tokens=counts.input_tokens,
        output_tokens=counts.output_tokens,
        cache_read_tokens=counts.cached_tokens,
        cache_write_tokens=counts.cache_write_tokens,
        output_reasoning_tokens=counts.reasoning_tokens,
    )
    try:
        with localcontext(prec=64):
            return genai_prices.calc_price(
                usage, model, provider_id=provider, genai_request_timestamp=at
            )
    except LookupError:
        return None


def expected(found: types.PriceCalculation, counts: Counts) -> Decimal | None:
    """What genai-prices says, but for what it has no price for: that is 0 there, and not known
    here unless the model's id says that it is free.
    """
    price = found.model_price
    if not any(vars(price).values()):
        return Decimal(0) if "free" in found.model.id else None
    if (counts.input_tokens and price.input_mtok is None) or (
        counts.output_tokens and price.output_mtok is None
    ):
        return None
    with localcontext(prec=64):
        return found.total_price.quantize(Decimal("1e-18"), ROUND_HALF_EVEN)


def names(logic: types.MatchLogic) -> Iterator[str]:
    """One name for each way in which a model may be meant."""
    match logic:
        case types.ClauseEquals(equals=text) | types.ClauseContains(contains=text):
            yield text
        case types.ClauseStartsWith(starts_with=text):
            yield f"{text}-x1"
        case types.ClauseEndsWith(ends_with=text):
            yield f"x1-{text}"
        case types.ClauseOr(or_=clauses) | types.ClauseAnd(and_=clauses):
            for clause in clauses:
                yield from names(clause)


@cache
def named() -> list[Named]:
    """Every model of genai-prices by every name, by one with a date at its end, and at those who
    resell it.
    """
    sellers = {provider.id: provider for provider in providers}
    sold = [(provider.id, model) for provider in providers for model in provider.models]
    resold = [
        (provider.id, model)
        for provider in providers
        for maker in provider.fallback_model_providers or ()
        for model in sellers[maker].models
    ]
    return [
        Named(seller, model, name)
        for seller, model in sold + resold
        for name in dict.fromkeys((model.id, f"{model.id}-20260131", *names(model.match)))
    ]


def changes(model: types.ModelInfo) -> Iterator[datetime]:
    """Moments at which a price of the model begins or ends."""
    for each in model.prices if isinstance(model.prices, list) else ():
        match each.constraint:
            case types.StartDateConstraint(start_date=day):
                yield datetime(day.year, day.month, day.day, tzinfo=UTC)
            case types.TimeOfDateConstraint(start_time=start, end_time=end):
                for time in (start, end):
                    yield NOW.replace(hour=time.hour, minute=time.minute)


USAGES = (
    Counts(1_000, 100, 400, 20, 30),
    Counts(123_457, 0),
    Counts(1_000_003, 7_919, 31_337, 104_729),
)
COUNT = st.integers(0, 2_000_000)


@st.composite
def some_counts(draw: st.DrawFn) -> Counts:
    cached, written, reasoning = draw(COUNT), draw(COUNT), draw(COUNT)
    return Counts(
        draw(COUNT) + cached + written, draw(COUNT) + reasoning, cached, written, reasoning
    )


def test_every_model_of_a_named_provider_costs_what_genai_prices_says() -> None:
    known = 0
    for number, each in enumerate(named()):
        counts = USAGES[number % len(USAGES)]
        if found := oracle(each.name, each.provider, counts):
            known += 1
            assert usd(each.name, each.provider, counts) == expected(found, counts), each
    assert known > len(named()) * 0.6


def test_every_model_without_a_provider_costs_what_genai_prices_says() -> None:
    known = 0
    for name in dict.fromkeys(each.name for each in named()):
        if found := oracle(name, None, USAGES[0]):
            known += 1
            for provider in (None, "strands-agents"):
                assert usd(name, provider, USAGES[0]) == expected(found, USAGES[0]), name
    assert known > 500


def test_a_price_holds_from_its_first_moment_to_its_last() -> None:
    tick = timedelta(microseconds=1)
    moments = [
        (each, at)
        for each in named()
        if each.name == each.model.id
        for change in changes(each.model)
        for at in (change - tick, change, change + tick)
    ]
    assert len(moments) > 600
    for each, at in moments:
        if found := oracle(each.name, each.provider, USAGES[0], at):
            assert usd(each.name, each.provider, USAGES[0], at) == expected(found, USAGES[0])


@given(each=st.deferred(lambda: st.sampled_from(named())), counts=some_counts(), data=st.data())
def test_any_usage_of_any_model_at_any_time_costs_what_genai_prices_says(
    each: Named, counts: Counts, data: st.DataObject
) -> None:
    at = NOW + data.draw(st.timedeltas(timedelta(days=-1_200), timedelta(days=400)))
    if found := oracle(each.name, each.provider, counts, at):
        assert usd(each.name, each.provider, counts, at) == expected(found, counts)


def test_no_tokens_of_a_model_without_a_price_are_not_known_to_be_free() -> None:
    assert usd("gpt-3.5-turbo", "github-copilot", Counts(0, 0)) is None
    assert usd("gpt-3.5-turbo", "openai", Counts(0, 0)) == 0


@given(counts=some_counts())
def test_a_tier_is_chosen_by_all_the_input(counts: Counts) -> None:
    found = oracle("claude-haiku-5-5", "anthropic", counts)
    assert found
    assert usd("claude-haiku-5-5", "anthropic", counts) == found.total_price


@pytest.mark.parametrize("input_tokens", [200_000, 200_001])
def test_a_tier_begins_above_its_bound(input_tokens: int) -> None:
    counts = Counts(input_tokens, 10)
    found = oracle("gemini-2.5-pro", "google", counts)
    assert found
    assert usd("gemini-2.5-pro", "google", counts) == found.total_price
    rate = Decimal("1.25") if input_tokens == 200_000 else Decimal("2.5")
    assert found.input_price == rate * input_tokens / 10**6


def test_cached_and_written_tokens_are_parts_of_the_input() -> None:
    assert computed("claude-sonnet-4-5", "anthropic", Counts(1_000, 100, 400, 20)) == Cost(
        "0.003435", table.load().name
    )


def test_cached_tokens_are_not_charged_twice() -> None:
    whole = usd("gpt-4o", "openai", Counts(13_675, 0, 9_216))
    parts = (Counts(4_459, 0), Counts(9_216, 0, 9_216))
    assert whole == sum(usd("gpt-4o", "openai", part) or 0 for part in parts)


@pytest.mark.parametrize("patterns", [["a-1", "a-*"], ["a-*", "a-1"], ["re:^a", "a-1", "*1"]])
def test_a_name_that_fits_several_models_means_the_first(patterns: list[str]) -> None:
    models = [table.Model([pattern], []) for pattern in patterns]
    assert Shelf(models).find("a-1") is models[0]
    assert Shelf(models).find("b") is None


@pytest.mark.parametrize(
    ("model", "provider", "like", "seller"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", None, None, "aws"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "strands-agents", None, "aws"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.messages", None, "aws"),
        ("global.anthropic.claude-opus-5", "gcp.vertex_ai", None, "aws"),
        ("amazon.nova-pro-v1:0", "aws.bedrock", None, "aws"),
        ("bedrock/eu.amazon.nova-pro-v1:0", "gcp.vertex.agent", "eu.amazon.nova-pro-v1:0", "aws"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0",
            None,
            "us.amazon.nova-lite-v1:0",
            "aws",
        ),
        ("gpt-4o", "openai", None, "openai"),
        ("GPT-4o ", " OpenAI", "gpt-4o", "openai"),
        ("gpt-4o", "langgraph", None, "openai"),
        ("openai/gpt-4o", "gcp.vertex.agent", "gpt-4o", "openai"),
        ("openrouter/qwen/qwen3-max", "litellm", "qwen/qwen3-max", "openrouter"),
        ("claude-sonnet-4-5", "openai", None, "anthropic"),
        ("claude-sonnet-4-5", "gcp.vertex_ai", None, "google"),
        ("gpt-4o", "azure.ai.openai", None, "azure"),
        ("gpt-4o", "azure.ai.inference", None, "azure"),
        ("gemini-2.5-pro", "gcp.gen_ai", None, "google"),
        ("grok-4.5", "x_ai", None, "x-ai"),
        ("claude-opus-5", "aws.bedrock", None, "aws"),
    ],
)
def test_what_traces_call_a_model(
    model: str, provider: str | None, like: str | None, seller: str
) -> None:
    found = oracle(like or model, seller, USAGES[0])
    assert found
    assert usd(model, provider, USAGES[0]) == found.total_price


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        (None, "openai"),
        ("", "openai"),
        ("a-model-of-our-own", "openai"),
        ("nova-pro", None),
        ("qwen3-max", None),
        ("deepseek-chat", "ollama"),
        ("ollama_chat/deepseek-chat", "gcp.vertex.agent"),
        ("claude-sonnet-4-5" + "x" * 250, "anthropic"),
        ("claude-sonnet-4-5", "anthropic" * 100),
        ("whisper-1", "openai"),
        ("mistral-ocr-latest", "mistral"),
        ("google/lyria-3-pro-preview", "openrouter"),
    ],
)
def test_what_the_table_does_not_know_has_no_cost(model: str | None, provider: str) -> None:
    assert computed(model, provider, USAGES[0]) is None


@pytest.mark.parametrize(
    "counts",
    [
        Counts(),
        Counts(None, 5),
        Counts(5, None),
        Counts(-1, 5),
        Counts(5, -1),
        Counts(5, 5, -1),
        Counts(5, 5, 0, -1),
        Counts(5, 5, 6),
        Counts(5, 5, 3, 3),
        Counts(5, 5, 0, 0, 6),
        Counts(5, 5, 0, 0, -1),
        Counts(10**30, 5),
    ],
)
def test_counts_that_are_missing_or_contradict_each_other_have_no_cost(counts: Counts) -> None:
    assert computed("claude-sonnet-4-5", "anthropic", counts) is None


def test_a_count_that_has_no_price_need_not_be_told_but_may_not_be_more_than_none() -> None:
    embedded = Counts(1_000, None)
    assert usd("text-embedding-3-small", "openai", embedded) == Decimal("0.00002")
    assert usd("text-embedding-3-small", "openai", embedded._replace(output_tokens=0))
    assert usd("text-embedding-3-small", "openai", embedded._replace(output_tokens=1)) is None


def test_a_free_model_costs_nothing_which_is_known() -> None:
    cost = computed("openai/gpt-oss-20b:free", "openrouter", USAGES[0])
    assert cost
    assert cost.usd == "0"


@given(each=st.deferred(lambda: st.sampled_from(named())), counts=some_counts())
def test_an_amount_is_money_on_the_wire(each: Named, counts: Counts) -> None:
    if cost := computed(each.name, each.provider, counts):
        assert msgspec.convert(cost.usd, wire.Money) == cost.usd


def test_no_number_of_names_fills_the_memory() -> None:
    before = lookup._found.cache_info()
    computed("x" * 10**6, None, USAGES[0])
    computed("gpt-4o", "x" * 10**6, USAGES[0])
    assert lookup._found.cache_info() == before
    assert before.maxsize == 1024


def test_an_amount_does_not_depend_on_how_the_worker_reckons() -> None:
    with localcontext(prec=2):
        assert usd("claude-sonnet-4-5", None, USAGES[2]) != 0
        cost = computed("claude-sonnet-4-5", "anthropic", Counts(1_000, 100, 400, 20))
    assert cost
    assert cost.usd == "0.003435"


def test_the_table_is_what_the_installed_package_gives() -> None:
    assert table.PATH.read_bytes() == generator.made(), "run: python -m tools.prices"


def test_nothing_of_it_is_loaded_with_the_library() -> None:
    assert "runtally.prices" not in loaded_by("from runtally import Recorder")
    asked = (
        "from runtally.prices import cost_of; "
        "assert cost_of('gpt-4o', None, at=0, input_tokens=1, output_tokens=1)"
    )
    loaded = loaded_by(asked)
    assert not loaded & {"genai_prices", "pydantic", "httpx2", "boto3"}
    assert "runtally.prices.table" in loaded


def test_importing_it_does_not_read_the_table() -> None:
    read = "import runtally.prices.table as t; assert t.load.cache_info().currsize == 0"
    assert "runtally.prices" in loaded_by(read)
