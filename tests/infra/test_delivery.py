"""Queues and event source mappings: nothing is lost on the way, nothing blocks the way for ever."""

import json
from typing import Any, cast

import pytest

from tests.infra.assembly import Assembly, Properties, resources_of, with_all_options

DAY = 24 * 3600


def mappings(assembly: Assembly) -> dict[str, Properties]:
    found = assembly.resources("AWS::Lambda::EventSourceMapping")
    assert set(found) == {
        "Ingest/Function/Messages",
        "Recount/Function/Messages",
        "Erase/Function/Messages",
        "Summarize/Function/Stream",
        *(
            f"ServiceEntries/DeadJobs/Function/DeadLettersOf-{name}"
            for name in assembly.settings.service_entries
        ),
    }
    return found


def resource(assembly: Assembly, reference: dict[str, Any]) -> Properties:
    """The properties of what a `Ref` or `Fn::GetAtt` of one of the stacks points at."""
    logical_id = reference["Ref"] if "Ref" in reference else reference["Fn::GetAtt"][0]
    (properties,) = (
        template["Resources"][logical_id]["Properties"]
        for template in assembly.templates
        if logical_id in template["Resources"]
    )
    return cast("Properties", properties)


def queues(assembly: Assembly) -> list[tuple[Properties, Properties]]:
    """Each queue that a function receives from, with its mapping."""
    return [
        (resource(assembly, mapping["EventSourceArn"]), mapping)
        for path, mapping in mappings(assembly).items()
        if not path.endswith("Stream")
    ]


def test_a_failed_part_of_a_batch_is_not_deleted_with_the_rest(assembly: Assembly) -> None:
    for mapping in mappings(assembly).values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping.get("Enabled", True)


def test_messages_come_in_small_batches_at_once(assembly: Assembly) -> None:
    for path, mapping in mappings(assembly).items():
        if path.endswith("Stream"):
            continue
        # Erasing has a time budget of its own for each run.
        assert mapping["BatchSize"] == (1 if path.startswith("Erase/") else 10)
        assert mapping.get("MaximumBatchingWindowInSeconds", 0) == 0


def test_neither_a_hot_run_nor_a_mass_deletion_takes_the_account_s_concurrency(
    assembly: Assembly,
) -> None:
    limited = {
        path: mapping["ScalingConfig"]
        for path, mapping in mappings(assembly).items()
        if "ScalingConfig" in mapping
    }
    assert limited == {
        "Ingest/Function/Messages": {"MaximumConcurrency": assembly.settings.ingest_at_once},
        "Erase/Function/Messages": {"MaximumConcurrency": 20},
    }


def test_a_poisoned_record_neither_blocks_the_stream_nor_disappears(assembly: Assembly) -> None:
    stream = mappings(assembly)["Summarize/Function/Stream"]
    assert stream["BisectBatchOnFunctionError"] is True
    assert 0 < stream["MaximumRetryAttempts"] <= 20
    assert 0 < stream["MaximumRecordAgeInSeconds"] < DAY  # the stream forgets after a day
    destination = stream["DestinationConfig"]["OnFailure"]["Destination"]
    assert assembly.pipeline["Resources"][destination["Fn::GetAtt"][0]]["Type"] == "AWS::S3::Bucket"


def test_the_stream_is_read_from_its_oldest_record_in_order(assembly: Assembly) -> None:
    stream = mappings(assembly)["Summarize/Function/Stream"]
    assert stream["StartingPosition"] == "TRIM_HORIZON"
    assert stream["ParallelizationFactor"] == 1
    assert stream["BatchSize"] == 1000
    assert stream["MaximumBatchingWindowInSeconds"] == 1


def test_a_failed_batch_is_announced_on_the_recount_queue(assembly: Assembly) -> None:
    failed = next(
        each
        for each in assembly.pipeline["Resources"].values()
        if each["Type"] == "AWS::S3::Bucket"
    )
    (notification,) = failed["Properties"]["NotificationConfiguration"]["QueueConfigurations"]
    recounts = mappings(assembly)["Recount/Function/Messages"]["EventSourceArn"]
    assert notification == {"Event": "s3:ObjectCreated:*", "Queue": recounts}
    (policy,) = failed["DependsOn"]
    statements = assembly.pipeline["Resources"][policy]["Properties"]["PolicyDocument"]
    assert "s3.amazonaws.com" in str(statements)


def test_a_message_reappears_only_when_its_function_cannot_run_any_more(
    assembly: Assembly,
) -> None:
    for queue, mapping in queues(assembly):
        timeout = resource(assembly, mapping["FunctionName"])["Timeout"]
        window = mapping.get("MaximumBatchingWindowInSeconds", 0)
        assert queue["VisibilityTimeout"] >= 6 * timeout + window


def test_an_undeliverable_message_is_kept_for_fourteen_days(assembly: Assembly) -> None:
    every = assembly.resources("AWS::SQS::Queue")
    receiving = [queue for queue in every.values() if "RedrivePolicy" in queue]
    assert len(receiving) == len(every) / 2
    for queue in receiving:
        redrive = queue["RedrivePolicy"]
        assert redrive["maxReceiveCount"] >= 5
        dead_letters = resource(assembly, redrive["deadLetterTargetArn"])
        assert dead_letters["MessageRetentionPeriod"] == 14 * DAY
        assert "RedrivePolicy" not in dead_letters
        # A dead letter keeps its age: it must not arrive there only to expire.
        assert queue["MessageRetentionPeriod"] < dead_letters["MessageRetentionPeriod"]


def test_a_job_that_nobody_finishes_is_tried_five_times_and_then_ends() -> None:
    """Workers extend the two minutes while they work."""
    assembly = with_all_options()
    jobs = assembly.resources("AWS::SQS::Queue")["ServiceEntries/research/Queue"]
    assert jobs["VisibilityTimeout"] == 120
    assert jobs["RedrivePolicy"]["maxReceiveCount"] == 5
    mapping = mappings(assembly)["ServiceEntries/DeadJobs/Function/DeadLettersOf-research"]
    assert mapping["EventSourceArn"] == jobs["RedrivePolicy"]["deadLetterTargetArn"]
    assert resource(assembly, mapping["EventSourceArn"])["VisibilityTimeout"] == 6 * 30


def test_throttling_cannot_turn_good_messages_into_dead_letters(assembly: Assembly) -> None:
    """A function with less concurrency than its poller refuses deliveries, and each one counts."""
    for function in assembly.resources("AWS::Lambda::Function").values():
        assert "ReservedConcurrentExecutions" not in function


def test_a_burst_of_late_steps_costs_one_recount(assembly: Assembly) -> None:
    recounts = resources_of(assembly.pipeline, "AWS::SQS::Queue")["Recounts/Queue"]
    assert recounts["DelaySeconds"] == 5


@pytest.mark.parametrize(
    "name", ["Ingest", "Summarize", "Recount", "Erase", "Sweep", "Api", "DeadJobs"]
)
def test_functions_find_their_surroundings(name: str) -> None:
    """By the names under which their settings look, read by those settings themselves."""
    from functions.adapters import settings  # noqa: PLC0415

    functions = with_all_options().resources("AWS::Lambda::Function")
    (variables,) = (
        function["Environment"]["Variables"]
        for path, function in functions.items()
        if path.endswith(f"{name}/Function")
    )
    assert variables["POWERTOOLS_SERVICE_NAME"] == name.lower()
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == "runtally/dev"
    with pytest.MonkeyPatch.context() as environment:
        for variable, value in variables.items():
            environment.setenv(variable, text(value))
        getattr(settings, f"{name}Settings").from_environment()


def text(value: Any) -> str:
    """A value as a function finds it, apart from what only a deployment knows."""
    match value:
        case str():
            return value
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(map(text, parts))
    return "of-another-resource"


def test_the_api_finds_the_queue_of_each_service_entry(assembly: Assembly) -> None:
    function = assembly.resources("AWS::Lambda::Function")["Api/Function"]
    found = json.loads(text(function["Environment"]["Variables"]["RUNTALLY_SERVICE_ENTRIES"]))
    assert set(found) == set(assembly.settings.service_entries)
