"""What a step counts: its own tokens and cost, never those of the steps below it."""

from decimal import Decimal
from typing import Any

import pytest

from runtally import wire
from tests.otel.figures import recorded
from tests.otel.making import AGENT, MODEL, child, noted, payload, said, span

NO_TOKENS = (None, None, None, None, None)


def tokens_of(step: wire.Step) -> tuple[int | None, ...]:
    return (
        step.input_tokens,
        step.output_tokens,
        step.cached_tokens,
        step.cache_write_tokens,
        step.reasoning_tokens,
    )


class TestTokens:
    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            (
                {
                    "gen_ai.usage.input_tokens": 1200,
                    "gen_ai.usage.output_tokens": 85,
                    "gen_ai.usage.cache_read.input_tokens": 600,
                    "gen_ai.usage.cache_write.input_tokens": 64,
                    "gen_ai.usage.reasoning.output_tokens": 12,
                },
                (1200, 85, 600, 64, 12),
            ),
            (
                {
                    "gen_ai.usage.prompt_tokens": 1200,
                    "gen_ai.usage.completion_tokens": 85,
                    "gen_ai.usage.cache_read_input_tokens": 600,
                    "gen_ai.usage.cache_creation_input_tokens": 64,
                    "gen_ai.usage.reasoning_tokens": 12,
                },
                (1200, 85, 600, 64, 12),
            ),
            (
                {
                    "llm.token_count.prompt": 1200,
                    "llm.token_count.completion": 85,
                    "llm.token_count.prompt_details.cache_read": 600,
                    "llm.token_count.prompt_details.cache_write": 64,
                    "llm.token_count.completion_details.reasoning": 12,
                },
                (1200, 85, 600, 64, 12),
            ),
            (
                {
                    "ai.usage.promptTokens": 1200,
                    "ai.usage.outputTokens": 85,
                    "ai.usage.cachedInputTokens": 600,
                    "ai.usage.inputTokenDetails.cacheWriteTokens": 64,
                    "ai.usage.reasoningTokens": 12,
                },
                (1200, 85, 600, 64, 12),
            ),
            (
                {
                    "langfuse.observation.usage_details": '{"input": 1200, "output": 85, '
                    '"input_cached_tokens": 600, "input_cache_creation": 64, '
                    '"output_reasoning_tokens": 12, "total": 1285}'
                },
                (1200, 85, 600, 64, 12),
            ),
            # The old and the new name of the same number, side by side.
            (
                {"gen_ai.usage.prompt_tokens": 1200, "gen_ai.usage.input_tokens": 1200},
                (1200, None, None, None, None),
            ),
            # What the conventions leave open how to send.
            ({"gen_ai.usage.input_tokens": "1200"}, (1200, None, None, None, None)),
            ({"gen_ai.usage.input_tokens": 1200.0}, (1200, None, None, None, None)),
            ({"gen_ai.usage.input_tokens": "1200.0"}, (1200, None, None, None, None)),
            ({"gen_ai.usage.input_tokens": 0}, (0, None, None, None, None)),
            # Nothing that could be a count: no count, and the step is recorded all the same.
            ({"gen_ai.usage.input_tokens": "many"}, NO_TOKENS),
            ({"gen_ai.usage.input_tokens": True}, NO_TOKENS),
            ({"gen_ai.usage.input_tokens": 1.5}, NO_TOKENS),
            ({"gen_ai.usage.input_tokens": "NaN"}, NO_TOKENS),
            ({"gen_ai.usage.input_tokens": -1}, NO_TOKENS),
            ({"langfuse.observation.usage_details": "no JSON"}, NO_TOKENS),
            ({"langfuse.observation.usage_details": "[1, 2]"}, NO_TOKENS),
        ],
    )
    def test_of_a_model_call(
        self, attributes: dict[str, Any], expected: tuple[int | None, ...]
    ) -> None:
        assert tokens_of(said(MODEL | attributes)) == expected

    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            # Within the input, as the convention has it.
            (
                {
                    "gen_ai.usage.input_tokens": 13_675,
                    "gen_ai.usage.cache_read.input_tokens": 9_216,
                },
                (13_675, 9_216, None),
            ),
            # Beside it: no part is larger than its whole. Numbers that Anthropic's API gave.
            (
                {
                    "gen_ai.usage.input_tokens": 2,
                    "gen_ai.usage.cache_read.input_tokens": 84_562,
                    "gen_ai.usage.cache_creation.input_tokens": 100,
                },
                (84_664, 84_562, 100),
            ),
            (
                {
                    "gen_ai.usage.input_tokens": 100,
                    "gen_ai.usage.cache_read.input_tokens": 60,
                    "gen_ai.usage.cache_write.input_tokens": 60,
                },
                (220, 60, 60),
            ),
            (
                {
                    "gen_ai.usage.input_tokens": 120,
                    "gen_ai.usage.cache_read.input_tokens": 60,
                    "gen_ai.usage.cache_write.input_tokens": 60,
                },
                (120, 60, 60),
            ),
        ],
    )
    def test_cached_ones_are_part_of_the_input(
        self, attributes: dict[str, Any], expected: tuple[int | None, ...]
    ) -> None:
        step = said(MODEL | attributes)
        assert (step.input_tokens, step.cached_tokens, step.cache_write_tokens) == expected

    def test_an_agent_that_repeats_the_sums_says_them_and_counts_nothing(self) -> None:
        step = said(
            AGENT
            | {
                "gen_ai.usage.input_tokens": 14_426,
                "gen_ai.usage.output_tokens": "771",
                "gen_ai.usage.cost": 0.09526,
                "gen_ai.request.model": "gpt-5-mini",
            }
        )
        assert tokens_of(step) == NO_TOKENS
        assert (step.cost_usd, step.cost_computed_usd, step.price_table) == (None, None, None)
        assert noted(step) == {
            "children.input_tokens": 14_426,
            "children.output_tokens": 771,
            "children.cost_usd": "0.09526",
        }

    def test_a_run_costs_what_its_model_calls_cost_not_that_and_the_agents_sum(self) -> None:
        """https://github.com/langfuse/langfuse/issues/14754"""
        used = {"gen_ai.usage.input_tokens": 13_675, "gen_ai.usage.output_tokens": 700}
        (run,) = recorded(
            [
                child(1, MODEL | used | {"gen_ai.usage.cost": 0.09}),
                child(
                    2,
                    MODEL
                    | {
                        "gen_ai.usage.input_tokens": 751,
                        "gen_ai.usage.output_tokens": 71,
                        "gen_ai.usage.cost": 0.00526,
                    },
                ),
                span(
                    AGENT
                    | {
                        "gen_ai.usage.input_tokens": 14_426,
                        "gen_ai.usage.output_tokens": 771,
                        "gen_ai.usage.cost": 0.09526,
                    }
                ),
            ]
        ).values()
        figures = run.figures
        assert (figures.tokens.input, figures.tokens.output) == (14_426, 771)
        assert figures.cost == Decimal("0.09526")


class TestCost:
    @pytest.mark.parametrize(
        ("name", "sent", "cost"),
        [
            ("runtally.cost_usd", "0.001", "0.001"),
            ("gen_ai.usage.cost", 0.0002375, "0.0002375"),
            ("operation.cost", 0.1, "0.1"),
            ("gen_ai.usage.total_cost", 2, "2"),
            ("gen_ai.usage.cost_usd", "0.00008355", "0.00008355"),
            ("llm.cost.total", 1e-7, "0.0000001"),
            ("cost_usd", 0, "0"),
            (
                "langfuse.observation.cost_details",
                '{"input": 0.1, "total": 0.30000001}',
                "0.30000001",
            ),
            ("langfuse.observation.cost_details", '{"input": 0.1, "output": 0.2}', "0.3"),
        ],
    )
    def test_reported(self, name: str, sent: Any, cost: str) -> None:
        step = said(MODEL | {name: sent})
        assert (step.cost_usd, step.cost_computed_usd) == (cost, None)
        assert noted(step) == {}

    @pytest.mark.parametrize("sent", ["cheap", "NaN", "-1", -0.5, float("inf"), "1e12", True])
    def test_what_is_no_amount_is_left_out_and_said_to_be(self, sent: Any) -> None:
        step = said(MODEL | {"gen_ai.usage.cost": sent})
        assert step.cost_usd is None
        assert noted(step) == {"runtally.dropped": ["cost_usd"]}
        assert payload(span(MODEL | {"gen_ai.usage.cost": sent}))["attributes"]

    @pytest.mark.parametrize("details", ["{}", "no JSON", '{"input": "cheap"}', "[0.1]"])
    def test_details_that_tell_no_cost(self, details: str) -> None:
        step = said(MODEL | {"langfuse.observation.cost_details": details})
        assert (step.cost_usd, noted(step)) == (None, {})

    def test_computed_where_none_is_reported(self) -> None:
        """$0.25 a million tokens of input, $0.025 of cached ones, $2 of output."""
        used = {
            "gen_ai.request.model": "gpt-5-mini",
            "gen_ai.provider.name": "openai",
            "gen_ai.usage.input_tokens": 1_000_000,
            "gen_ai.usage.cache_read.input_tokens": 400_000,
            "gen_ai.usage.output_tokens": 100_000,
        }
        step = said(MODEL | used)
        assert (step.cost_usd, step.cost_computed_usd) == (None, "0.36")
        assert step.price_table
        reported = said(MODEL | used | {"operation.cost": 0.5})
        assert (reported.cost_usd, reported.cost_computed_usd) == ("0.5", None)
        assert reported.price_table is None

    def test_cached_tokens_are_charged_once(self) -> None:
        """4,459 tokens of input and 9,216 cached ones: what is left of 13,675 costs the full price.

        https://github.com/langfuse/langfuse/issues/10592
        """
        used = {
            "gen_ai.request.model": "gpt-5-mini",
            "gen_ai.usage.input_tokens": 13_675,
            "gen_ai.usage.cache_read.input_tokens": 9_216,
            "gen_ai.usage.output_tokens": 0,
        }
        assert said(MODEL | used).cost_computed_usd == "0.00134515"

    def test_of_the_model_that_was_asked_for_if_the_one_that_answered_has_no_price(self) -> None:
        used = {"gen_ai.usage.input_tokens": 1_000_000, "gen_ai.usage.output_tokens": 0}
        models = {"gen_ai.request.model": "gpt-5-mini", "gen_ai.response.model": "our-own-1"}
        step = said(MODEL | used | models)
        assert (step.model, step.cost_computed_usd) == ("our-own-1", "0.25")

    @pytest.mark.parametrize(
        "attributes",
        [
            {"gen_ai.request.model": "our-own-1", "gen_ai.usage.input_tokens": 10},
            {"gen_ai.request.model": "gpt-5-mini"},
            {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 10},
        ],
        ids=["unknown-model", "no-tokens", "no-model"],
    )
    def test_unknown_is_not_nothing(self, attributes: dict[str, Any]) -> None:
        step = said(MODEL | attributes)
        assert (step.cost_usd, step.cost_computed_usd, step.price_table) == (None, None, None)
