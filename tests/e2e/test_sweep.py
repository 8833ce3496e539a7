"""Stale runs and events of runs, through everything that the stack deploys."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.core import keys
from local import waiting
from local.stage import Stage
from tests.build import ended, started, step
from tests.e2e.pipeline import WITHIN_S, Pipeline


def sweep(stage: Stage) -> dict[str, Any]:
    """What a sweep says that it did: invoked as the schedule does, which takes minutes to come."""
    answer = stage.client("lambda").invoke(FunctionName=stage.sweep_function, Payload=b"{}")
    said: dict[str, Any] = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, said
    return said


def subscribed(pipeline: Pipeline) -> Callable[[], list[dict[str, Any]]]:
    """A queue to which a rule brings all events of runs; gives those of this test's run."""
    events, sqs = pipeline.stage.client("events"), pipeline.stage.sqs
    queue_url = sqs.create_queue(QueueName=pipeline.ref.run_id[:60])["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    events.put_rule(
        Name=pipeline.ref.run_id[:60], EventPattern=json.dumps({"source": ["runtally"]})
    )
    target = {"Id": "queue", "Arn": attributes["Attributes"]["QueueArn"]}
    events.put_targets(Rule=pipeline.ref.run_id[:60], Targets=[target])
    arrived: list[dict[str, Any]] = []

    def of_this_run() -> list[dict[str, Any]]:
        answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10)
        arrived.extend(json.loads(message["Body"]) for message in answer.get("Messages", []))
        return [each for each in arrived if each["detail"]["run_id"] == pipeline.ref.run_id]

    return of_this_run


def goes_stale_and_is_repaired(pipeline: Pipeline) -> None:
    told = subscribed(pipeline)
    pipeline.send(
        pipeline.body(started(stale_after_s=1), step(1, phase="plan", cost_usd="0.1"), step(2))
    )
    waiting.until(lambda: len(pipeline.steps()) == 2 or None, WITHIN_S, "No steps")
    assert sweep(pipeline.stage)["OpenRuns"] >= 1
    assert pipeline.summarised(steps=2).status == "stale"
    (stale,) = waiting.until(lambda: told() or None, WITHIN_S, "No event")
    assert stale["detail-type"] == "run.stale"
    assert sweep(pipeline.stage)["RunsStale"] == 0

    pipeline.send(pipeline.body(step(3), ended(status="failed", error="late")))
    assert pipeline.summarised(steps=3).status == "failed"
    waiting.until(lambda: len(told()) == 2 or None, WITHIN_S, "No event")
    end = told()[1]
    assert end["detail-type"] == "run.ended"
    assert (end["detail"]["status"], end["detail"]["error"]) == ("failed", "late")
    assert end["detail"]["totals"]["agents_total"] == 3
    assert "stale_at" not in pipeline.item(keys.RUN)


@pytest.mark.xdist_group("stage")
def test_a_silent_run_is_stale_until_its_real_end(pipeline: Pipeline) -> None:
    goes_stale_and_is_repaired(pipeline)


@pytest.mark.xdist_group("guarded stage")
def test_the_granted_actions_suffice_for_it(guarded_pipeline: Pipeline) -> None:
    goes_stale_and_is_repaired(guarded_pipeline)


@pytest.mark.xdist_group("stage")
def test_the_schedule_is_deployed(stage: Stage) -> None:
    events = stage.client("events")
    (rule,) = (rule for rule in events.list_rules()["Rules"] if "sweep" in rule["Name"].lower())
    assert rule["ScheduleExpression"] == "rate(5 minutes)"
    (target,) = events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    assert target["Arn"].endswith(stage.sweep_function)
