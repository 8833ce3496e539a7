"""Queues and event source mappings: nothing is lost on the way, nothing blocks the way for ever."""

from typing import Any

import pytest

from tests.infra.assembly import Assembly, Properties, resources_of

DAY = 24 * 3600


def mappings(assembly: Assembly) -> dict[str, Properties]:
    found = resources_of(assembly.pipeline, "AWS::Lambda::EventSourceMapping")
    assert set(found) == {
        "Ingest/Function/Messages",
        "Recount/Function/Messages",
        "Summarize/Function/Stream",
    }
    return found


def resource(assembly: Assembly, reference: dict[str, Any]) -> Properties:
    """The properties of what a `Ref` or `Fn::GetAtt` of the pipeline stack points at."""
    logical_id = reference["Ref"] if "Ref" in reference else reference["Fn::GetAtt"][0]
    properties: Properties = assembly.pipeline["Resources"][logical_id]["Properties"]
    return properties


def queues(assembly: Assembly) -> list[tuple[Properties, Properties]]:
    """Each queue with its mapping."""
    return [
        (resource(assembly, mapping["EventSourceArn"]), mapping)
        for path, mapping in mappings(assembly).items()
        if path.endswith("Messages")
    ]


def test_a_failed_part_of_a_batch_is_not_deleted_with_the_rest(assembly: Assembly) -> None:
    for mapping in mappings(assembly).values():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping.get("Enabled", True)


def test_messages_come_in_small_batches_at_once(assembly: Assembly) -> None:
    for _, mapping in queues(assembly):
        assert mapping["BatchSize"] == 10
        assert mapping.get("MaximumBatchingWindowInSeconds", 0) == 0


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
    for queue, _ in queues(assembly):
        redrive = queue["RedrivePolicy"]
        assert redrive["maxReceiveCount"] >= 5
        dead_letters = resource(assembly, redrive["deadLetterTargetArn"])
        assert dead_letters["MessageRetentionPeriod"] == 14 * DAY
        # A dead letter keeps its age: it must not arrive there only to expire.
        assert queue["MessageRetentionPeriod"] < dead_letters["MessageRetentionPeriod"]


def test_throttling_cannot_turn_good_messages_into_dead_letters(assembly: Assembly) -> None:
    """A function with less concurrency than its poller refuses deliveries, and each one counts."""
    for function in resources_of(assembly.pipeline, "AWS::Lambda::Function").values():
        assert "ReservedConcurrentExecutions" not in function


def test_a_burst_of_late_steps_costs_one_recount(assembly: Assembly) -> None:
    recounts = resources_of(assembly.pipeline, "AWS::SQS::Queue")["Recounts/Queue"]
    assert recounts["DelaySeconds"] == 5


@pytest.mark.parametrize("name", ["Ingest", "Summarize", "Recount"])
def test_functions_find_their_surroundings(name: str, assembly: Assembly) -> None:
    """By the names under which their settings look, read by those settings themselves."""
    from functions.adapters import settings  # noqa: PLC0415

    function = resources_of(assembly.pipeline, "AWS::Lambda::Function")[f"{name}/Function"]
    variables = function["Environment"]["Variables"]
    assert variables["POWERTOOLS_SERVICE_NAME"] == name.lower()
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == "runtally"
    with pytest.MonkeyPatch.context() as environment:
        for variable, value in variables.items():
            environment.setenv(variable, value if isinstance(value, str) else "of-another-resource")
        getattr(settings, f"{name}Settings").from_environment()
