"""The one function that runs by the clock, and who may tell other programs about runs."""

from dataclasses import replace

import pytest

from cdk.settings import settings_of
from cdk.sweep import SWEEP_TIMEOUT
from tests.infra.assembly import Assembly, resources_of
from tests.infra.permissions import GOLDEN


def test_the_sweep_is_started_every_few_minutes(assembly: Assembly) -> None:
    (rule,) = resources_of(assembly.pipeline, "AWS::Events::Rule").values()
    assert rule["ScheduleExpression"] == f"rate({assembly.settings.sweep_minutes} minutes)"
    assert rule["State"] == "ENABLED"
    (target,) = rule["Targets"]
    sweep = target["Arn"]["Fn::GetAtt"][0]
    function = assembly.pipeline["Resources"][sweep]["Properties"]
    assert function["Handler"] == "functions.sweep.handler.handle"
    told = function["Environment"]["Variables"]["RUNTALLY_SWEEP_MINUTES"]
    assert told == str(assembly.settings.sweep_minutes)
    assert "DeadLetterConfig" not in target  # the next one repeats what this one did not do


def test_a_sweep_that_failed_is_not_repeated_next_to_the_next_one(assembly: Assembly) -> None:
    (config,) = resources_of(assembly.pipeline, "AWS::Lambda::EventInvokeConfig").values()
    (rule,) = resources_of(assembly.pipeline, "AWS::Events::Rule").values()
    (target,) = rule["Targets"]
    between_s = 60 * assembly.settings.sweep_minutes
    assert config["MaximumRetryAttempts"] == target["RetryPolicy"]["MaximumRetryAttempts"] == 0
    assert config["MaximumEventAgeInSeconds"] <= between_s
    function = assembly.pipeline["Resources"][config["FunctionName"]["Ref"]]["Properties"]
    assert function["Timeout"] < between_s


def test_only_those_that_know_of_it_tell_that_a_run_ended_and_only_as_runtally() -> None:
    lines = [line.split(" | ") for line in GOLDEN.read_text().splitlines()]
    tellers = {who: resource for who, action, resource in lines if action == "events:PutEvents"}
    assert set(tellers) == {"recount", "summarize", "sweep"}
    for resource in tellers.values():
        only_as_runtally = "event-bus/default if events:source StringEqualsIfExists runtally"
        assert resource.endswith(only_as_runtally)


def test_the_sweep_changes_runs_and_its_own_place_and_nothing_else() -> None:
    lines = [line.split(" | ") for line in GOLDEN.read_text().splitlines()]
    writes = [
        resource.rpartition(" ")[2]
        for who, action, resource in lines
        if who == "sweep"
        and action.startswith("dynamodb:")
        and action.removeprefix("dynamodb:") not in {"GetItem", "BatchGetItem", "Query"}
    ]
    assert writes == ["PIPELINERUN#*", "SWEEP*"]


@pytest.mark.parametrize("minutes", [-5, 0, 4, 61])
def test_a_sweep_that_would_meet_the_next_or_hardly_run_is_refused(minutes: int) -> None:
    with pytest.raises(ValueError, match=f"sweep_minutes is {minutes}"):
        replace(settings_of("dev"), sweep_minutes=minutes)


def test_a_sweep_is_over_before_the_next_begins_however_often_that_is() -> None:
    for minutes in (5, 60):
        settings = replace(settings_of("dev"), sweep_minutes=minutes)
        assert SWEEP_TIMEOUT.to_minutes() < settings.sweep_minutes
