"""One run from its messages to its summary, through everything that the stack deploys."""

import json

import pytest

from functions.core import keys
from runtally import wire
from tests.build import ended, log, started, step
from tests.e2e.pipeline import Pipeline

pytestmark = pytest.mark.xdist_group("stage")

PAYLOAD = {"messages": [{"role": "user", "content": "名前は？ 🎉"}], "n": 12345678901234567890}


def three_steps(pipeline: Pipeline) -> list[bytes]:
    """A message each, the end ahead of the last step, and every message twice."""
    bodies = [
        pipeline.body(started(pipeline="e2e")),
        pipeline.body(step(1, phase="plan", cost_usd="0.1", input_tokens=7, payload=PAYLOAD)),
        pipeline.body(ended(result="done"), log(9, "a line")),
        pipeline.body(
            step(2, phase="plan", cost_usd="0.2", output_tokens=5),
            step(3, phase="act", status="failed", error="ToolError: no"),
        ),
    ]
    return bodies + bodies


def assert_three_steps(pipeline: Pipeline) -> None:
    result = pipeline.summarised(steps=3)
    assert result.status == "succeeded"
    assert result.totals.agents_total == 3
    assert result.totals.failed_total == 1
    assert result.totals.cost_usd_total == "0.3"
    assert result.totals.cost_unknown_total == 1
    assert (result.totals.input_tokens, result.totals.output_tokens) == (7, 5)
    assert [(phase.phase, phase.calls, phase.failed) for phase in result.phases.entries] == [
        ("plan", 2, 0),
        ("act", 1, 1),
    ]
    first, *_ = steps = pipeline.steps()
    assert [item[keys.SORT] for item in steps] == [
        keys.STEP_PREFIX + step(n).step_id for n in (1, 2, 3)
    ]
    line = pipeline.stored_line(first)
    assert json.loads(line)["payload"] == PAYLOAD
    assert wire.digest(line) == first["digest"]
    assert pipeline.item(keys.RESULT)["result"] == "done"


def test_a_run_is_counted_exactly_whatever_the_order_and_however_often(pipeline: Pipeline) -> None:
    pipeline.send(*three_steps(pipeline))
    assert_three_steps(pipeline)


def test_a_message_of_2_mb_goes_by_way_of_the_bucket(pipeline: Pipeline) -> None:
    large = {"text": "語" * 700_000}
    pipeline.send(pipeline.body(started(), step(1, payload=large), ended()))
    assert pipeline.summarised(steps=1).totals.agents_total == 1
    (item,) = pipeline.steps()
    assert json.loads(pipeline.stored_line(item))["payload"] == large


def test_what_can_never_be_accepted_is_kept_with_its_reason(pipeline: Pipeline) -> None:
    mixed = pipeline.body(step(1, cost_usd="-1"), step(2))
    pipeline.send(pipeline.body(started()), mixed, pipeline.body(ended()))
    pipeline.summarised(steps=1)
    assert [item[keys.SORT] for item in pipeline.steps()] == [keys.STEP_PREFIX + step(2).step_id]
    (letter,) = pipeline.dead_letters()
    assert letter["Body"] == mixed.decode()
    assert letter["MessageAttributes"]["field"]["StringValue"] == "events[0].cost_usd"
