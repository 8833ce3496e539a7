"""Each recipe of docs/integrations.md run for real: framework, exporter, API, summary.

All play the same story against the same scripted model: a tool is called, fails, is called again
and answers; a second agent, or node, writes the answer down. So all come to the same figures.
"""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integrations.programs import run_node, run_script
from tests.integrations.serving import ADVISED, Place

pytestmark = pytest.mark.large

QUESTION: Final = "東京には何人住んでいますか？"
ANSWER: Final = "東京の人口は約1,400万人です。🗼"
NOT_REACHED: Final = "統計局に接続できません"
COST: Final = Decimal("0.0013196")
"""Of 4,600 input tokens, 1,024 of them cached, and 200 output tokens of gpt-5-mini: in dollars a
million 0.25, 0.025 and 2."""


@dataclass(frozen=True)
class Recipe:
    program: str
    steps: int
    depth: int
    phases: tuple[str, str] = ("search", "write")
    cost: Decimal = COST
    reports_cost: bool = False
    cached_tokens: int = 1_024
    error: str = f"TimeoutError: {NOT_REACHED}"


RECIPES: Final = (
    Recipe("langgraph_agent.py", steps=18, depth=5),
    Recipe("strands_agents.py", steps=14, depth=5, phases=("researcher", "writer")),
    Recipe(
        "pydantic_ai_agents.py",
        steps=9,
        depth=3,
        phases=("researcher", "writer"),
        reports_cost=True,
        error=f"pydantic_ai.exceptions.ToolRetryError: {NOT_REACHED}",
    ),
    Recipe(
        "openai_agents.py",
        steps=15,
        depth=5,
        phases=("researcher", "writer"),
        # Its instrumentation leaves out the cached tokens of chat completions.
        cached_tokens=0,
        cost=Decimal("0.00155"),
        error="Error running tool (non-fatal)",
    ),
    Recipe("plain_otlp.py", steps=7, depth=2),
    Recipe("plain_sqs.py", steps=9, depth=3),
    Recipe("vercel-ai", steps=9, depth=3, error=f"Error: {NOT_REACHED}"),
)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.program)
def test_a_recipe_comes_to_what_it_did(recipe: Recipe, place: Place, tmp_path: Path) -> None:
    environment = {**place.environment, **ADVISED, "RUNTALLY_SPOOL_DIR": str(tmp_path / "spool")}
    if recipe.program.endswith(".py"):
        printed = run_script(recipe.program, environment)
    else:
        printed = run_node(recipe.program, tmp_path / recipe.program, environment)
    assert printed.strip() == ANSWER
    run = place.the_run()
    check_run(run, recipe)
    check_phases(run, recipe)
    check_calls(run["calls"], recipe)
    assert texts_in(place, run) == {QUESTION, ANSWER}


def test_root_and_children_may_come_in_different_requests(place: Place) -> None:
    environment = {
        **place.environment,
        **ADVISED,
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=agents",
    }
    run_script("langgraph_agent.py", environment)
    run = place.the_run()
    check_run(run, RECIPES[0])
    check_phases(run, RECIPES[0])
    assert run["run"]["attributes"]["service.name"] == "agents"


def check_run(run: dict[str, Any], recipe: Recipe) -> None:
    assert (run["run"]["pipeline"], run["run"]["status"]) == ("research", "succeeded")
    totals = run["totals"]
    assert totals["source"] == "summary"
    assert (totals["agents_total"], totals["failed_total"]) == (recipe.steps, 1)
    assert (totals["input_tokens"], totals["output_tokens"]) == (4_600, 200)
    assert totals["cached_tokens"] == recipe.cached_tokens
    assert Decimal(totals["cost_usd_total"]) == recipe.cost


def check_phases(run: dict[str, Any], recipe: Recipe) -> None:
    """The first holds three of the model's calls and the failed tool, the second one call."""
    told = {entry["phase"]: entry for entry in run["phases"]["entries"]}
    first, second = (told[phase] for phase in recipe.phases)
    assert [(p["input_tokens"], p["failed"]) for p in (first, second)] == [(3_600, 1), (1_000, 0)]
    assert sum(Decimal(phase["cost_usd"]) for phase in (first, second)) == recipe.cost
    assert list(told)[-2:] == list(recipe.phases)


def check_calls(calls: list[dict[str, Any]], recipe: Recipe) -> None:
    depths = depths_of(calls)
    assert (max(depths), depths.count(1)) == (recipe.depth, 1)
    models = [call for call in calls if call["kind"] == "model"]
    assert [call["model"] for call in models] == ["gpt-5-mini"] * 4
    priced = "cost_usd" if recipe.reports_cost else "cost_computed_usd"
    assert all(priced in call for call in models)
    tools = [call for call in calls if call["kind"] == "tool"]
    assert [call["name"] for call in tools] == ["look_up", "look_up"]
    (failed,) = (call for call in tools if call["status"] == "failed")
    assert failed["error"].startswith(recipe.error)


def depths_of(calls: list[dict[str, Any]]) -> list[int]:
    """How deep each call lies in the tree; fails where a parent was not recorded.

    A parent may stand behind its child: spans of Node begin at whole milliseconds.
    """
    parents = {call["step_id"].partition("-")[2]: call.get("parent_id") for call in calls}

    def depth_of(suffix: str | None) -> int:
        return 0 if suffix is None else depth_of(parents[suffix]) + 1

    return [depth_of(suffix) for suffix in parents]


def texts_in(place: Place, run: dict[str, Any]) -> set[str]:
    """Which texts of the story the payloads of the model's calls hold."""
    payloads = [
        place.client.get(f"/pipeline-runs/{run['run']['run_id']}/calls/{call['step_id']}/payload")
        for call in run["calls"]
        if call["kind"] == "model"
    ]
    return {text for text in (QUESTION, ANSWER) for p in payloads if text in str(p.json)}
