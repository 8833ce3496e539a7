"""What the outputs of the stacks name is there, and is what it should be."""

import json

import pytest

from local.connect import find_deployed
from local.stage import Stage

pytestmark = pytest.mark.xdist_group("stage")


def test_the_outputs_name_what_was_deployed(stage: Stage) -> None:
    assert stage.stage == "local"
    assert stage.retention_days > 0
    table = stage.dynamodb.describe_table(TableName=stage.table_name)["Table"]
    assert table["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    stage.s3.head_bucket(Bucket=stage.bucket_name)
    queues = {
        stage.event_queue_url,
        stage.event_queue_dead_letter_url,
        stage.recount_queue_url,
        stage.recount_dead_letter_url,
        *json.loads(stage.service_entry_queue_urls).values(),
        *json.loads(stage.service_entry_dead_letter_urls).values(),
    }
    assert len(queues) == 6
    for queue in queues:
        attributes = stage.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        assert attributes["Attributes"]["QueueArn"].endswith(queue.rpartition("/")[2])


def test_each_function_has_its_source_of_events(stage: Stage) -> None:
    functions = stage.client("lambda")
    sources = {}
    for function in set(stage.functions) - {stage.api_function, stage.sweep_function}:
        mappings = functions.list_event_source_mappings(FunctionName=function)
        (mapping,) = mappings["EventSourceMappings"]
        assert mapping["State"] == "Enabled"
        sources[function] = mapping["EventSourceArn"]
    assert sources[stage.ingest_function].endswith(stage.event_queue_url.rpartition("/")[2])
    assert sources[stage.recount_function].endswith(stage.recount_queue_url.rpartition("/")[2])
    (dead_jobs,) = json.loads(stage.service_entry_dead_letter_urls).values()
    assert sources[stage.dead_jobs_function].endswith(dead_jobs.rpartition("/")[2])
    assert f"/{stage.table_name}/stream/" in sources[stage.summarize_function].replace(
        "table/", "/"
    )


def test_the_command_line_finds_a_deployed_stage_by_the_names_of_its_stacks(stage: Stage) -> None:
    assert find_deployed("local", stage.cloud) == stage
