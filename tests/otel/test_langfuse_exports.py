"""Traces of more frameworks, as Langfuse and Monocle exported them."""

from collections import Counter
from decimal import Decimal

import pytest

from functions.core.phases import NO_PHASE
from runtally.otel.spans import Span
from tests.otel import langfuse_export, monocle_export
from tests.otel.completeness import lost
from tests.otel.expected import LANGFUSE
from tests.otel.figures import Figures, Recorded, payload_of, recorded
from tests.otel.samples import sample

MONOCLE = "genai/monocle.deerflow-ev-battery.json"
each_export = pytest.mark.parametrize("name", LANGFUSE)


def spans_of(name: str) -> list[Span]:
    read = monocle_export.spans_in if name == MONOCLE else langfuse_export.spans_in
    return read(sample(name))


def run_of(name: str) -> Recorded:
    (run,) = recorded(spans_of(name)).values()
    return run


@each_export
def test_a_run_comes_to_what_was_exported(name: str) -> None:
    assert run_of(name).figures == LANGFUSE[name].figures


@each_export
def test_kinds_names_and_session(name: str) -> None:
    run, expected = run_of(name), LANGFUSE[name]
    assert Counter(step.kind for step in run.steps) == expected.kinds
    assert len({step.name for step in run.steps}) == expected.names
    assert {step.phase_hint for step in run.steps if step.phase_hint} == expected.hints
    assert run.started[0].session_id == expected.session_id


@each_export
def test_what_agents_repeat_of_their_model_calls_is_said_and_not_counted(name: str) -> None:
    steps = sorted(run_of(name).steps, key=lambda step: step.started_at)
    attributes = [step.attributes or {} for step in steps if step.kind != "model"]
    repeated = [
        (told["children.input_tokens"], told["children.output_tokens"])
        for told in attributes
        if "children.input_tokens" in told
    ]
    assert repeated == list(LANGFUSE[name].repeated)


@pytest.mark.parametrize("name", [*LANGFUSE, MONOCLE])
def test_nothing_exported_is_lost(name: str) -> None:
    for span in spans_of(name):
        (run,) = recorded([span]).values()
        assert lost(span, payload_of(run.steps[0])) == []


def test_no_cost_that_langfuse_computed_counts_as_reported() -> None:
    for name, export in LANGFUSE.items():
        reported = sum(Decimal(step.cost_usd or 0) for step in run_of(name).steps)
        assert reported == export.figures.cost
        assert all(
            step.cost_usd is None or not step.cost_computed_usd for step in run_of(name).steps
        )


def test_a_model_call_of_monocle_that_appears_as_two_spans_is_one_model_call() -> None:
    """The framework's span tells of it, in an event; the client's below it tells nothing."""
    run = run_of(MONOCLE)
    assert run.figures == Figures(
        "deer-flow",
        "succeeded",
        steps=17,
        failed=0,
        depth=5,
        phases={NO_PHASE: 1, "langgraph.graph.state.CompiledStateGraph.stream": 16},
    )
    assert Counter(step.kind for step in run.steps) == {
        "workflow": 1,
        "agent": 1,
        "chain": 5,
        "model": 4,
        "tool": 6,
    }
    telling = [
        span.attributes["span.type"]
        for span in spans_of(MONOCLE)
        if any("prompt_tokens" in event.attributes for event in span.events)
    ]
    assert telling == ["inference.framework"] * 4
