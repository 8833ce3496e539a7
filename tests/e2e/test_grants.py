"""The grants let the functions work: with them a run is recorded, without one it is not."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from functions.core import keys
from local import waiting
from local.stage import Stage
from tests.build import ended, started, step
from tests.e2e.pipeline import WITHIN_S, Pipeline
from tests.e2e.test_dead_letters import (
    test_a_body_that_was_kept_in_the_bucket_comes_back_whole as kept_body_comes_back_whole,
)
from tests.e2e.test_deletion import deleted_over_http
from tests.e2e.test_one_run import assert_three_steps, three_steps

pytestmark = pytest.mark.xdist_group("guarded stage")


def test_the_granted_actions_suffice(guarded_pipeline: Pipeline) -> None:
    guarded_pipeline.send(*three_steps(guarded_pipeline))
    assert_three_steps(guarded_pipeline)


def test_without_leave_to_put_objects_ingest_stores_no_step(guarded_pipeline: Pipeline) -> None:
    pipeline = guarded_pipeline
    denied = pipeline.body(started(), step(1), ended())
    with without(pipeline.stage, pipeline.stage.ingest_function, "s3:PutObject", "agent-runs/"):
        redeliver_at_once(pipeline.stage)
        pipeline.send(denied)
        letters = waiting.until(lambda: pipeline.dead_letters() or None, WITHIN_S, "No dead letter")
        assert pipeline.steps() == []
    assert [letter["Body"] for letter in letters] == [denied.decode()]
    pipeline.send(denied)
    assert pipeline.summarised(steps=1).totals.agents_total == 1
    assert [item[keys.SORT] for item in pipeline.steps()] == [keys.STEP_PREFIX + step(1).step_id]


def test_the_granted_actions_suffice_for_a_dead_letter_whose_body_lies_in_the_bucket(
    guarded_pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_body_comes_back_whole(guarded_pipeline, capsys)


def test_the_granted_actions_suffice_for_a_deletion(guarded_pipeline: Pipeline) -> None:
    deleted_over_http(guarded_pipeline)


def redeliver_at_once(stage: Stage) -> None:
    """A message that failed comes back after seconds, not minutes, until it has come too often."""
    stage.sqs.set_queue_attributes(
        QueueUrl=stage.event_queue_url, Attributes={"VisibilityTimeout": "1"}
    )


@contextmanager
def without(stage: Stage, function: str, action: str, resource: str) -> Iterator[None]:
    """Take one grant from a function's role: the statements' action on resources named so."""
    iam = stage.client("iam")
    role = stage.client("lambda").get_function_configuration(FunctionName=function)["Role"]
    role_name = role.rpartition("/")[2]
    (policy_name,) = iam.list_role_policies(RoleName=role_name)["PolicyNames"]
    policy = iam.get_role_policy(RoleName=role_name, PolicyName=policy_name)["PolicyDocument"]
    denied = {"Effect": "Deny", "Action": action, "Resource": _granted(policy, action, resource)}
    lesser = policy | {"Statement": [*policy["Statement"], denied]}

    def put(document: dict[str, Any]) -> None:
        iam.put_role_policy(
            RoleName=role_name, PolicyName=policy_name, PolicyDocument=json.dumps(document)
        )

    put(lesser)
    try:
        yield
    finally:
        put(policy)


def _granted(policy: dict[str, Any], action: str, resource: str) -> list[str]:
    """The resources named so that the policy grants the action on."""
    granted = [
        name
        for statement in policy["Statement"]
        if action in _listed(statement["Action"])
        for name in _listed(statement["Resource"])
        if resource in name
    ]
    assert granted
    return granted


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
