"""The outputs of the stacks, and the file that remembers a running stage."""

import json
from pathlib import Path

import pytest

from local.emulator import Access
from local.page import ServedPage
from local.stage import Running, Stage

ACCESS = Access("http://127.0.0.1:1", "LOCALKEY", "secret")
OUTPUTS = {
    "TableName": "table",
    "BucketName": "bucket",
    "EventQueueUrl": "http://127.0.0.1:1/0/events",
    "EventQueueDeadLetterUrl": "http://127.0.0.1:1/0/events-dead",
    "RecountQueueUrl": "http://127.0.0.1:1/0/recounts",
    "RecountDeadLetterUrl": "http://127.0.0.1:1/0/recounts-dead",
    "ErasureQueueUrl": "http://127.0.0.1:1/0/erasures",
    "ErasureDeadLetterUrl": "http://127.0.0.1:1/0/erasures-dead",
    "IngestFunction": "ingest",
    "SummarizeFunction": "summarize",
    "RecountFunction": "recount",
    "EraseFunction": "erase",
    "SweepFunction": "sweep",
    "ApiId": "0123abcd",
    "ApiFunction": "api",
    "DeadJobsFunction": "dead-jobs",
    "ServiceEntryQueueUrls": '{"research":"http://127.0.0.1:1/0/research"}',
    "ServiceEntryDeadLetterUrls": '{"research":"http://127.0.0.1:1/0/research-dead"}',
    "RetentionDays": "3650",
    "QuietS": "600",
    "Stage": "local",
    "WorkerAccessPolicyArn": "arn:aws:iam::0:policy/of-no-concern-here",
}


def test_a_stage_is_made_of_the_outputs() -> None:
    stage = Stage.of_outputs(OUTPUTS, ACCESS)
    assert stage.table_name == "table"
    assert stage.event_queue_dead_letter_url.endswith("/events-dead")
    assert stage.retention_days == 3650
    assert stage.functions == (
        "ingest", "summarize", "recount", "erase", "sweep", "api", "dead-jobs",
    )  # fmt: skip
    assert stage.api_url == "http://127.0.0.1:1/_aws/execute-api/0123abcd/$default"


def test_a_stage_may_have_no_service_entries() -> None:
    of_entries = {"DeadJobsFunction", "ServiceEntryQueueUrls", "ServiceEntryDeadLetterUrls"}
    others = {name: value for name, value in OUTPUTS.items() if name not in of_entries}
    stage = Stage.of_outputs(others, ACCESS)
    assert stage.functions == ("ingest", "summarize", "recount", "erase", "sweep", "api")
    assert stage.service_entry_queue_urls == stage.service_entry_dead_letter_urls == "{}"


def test_a_stage_may_have_a_lake() -> None:
    without = Stage.of_outputs(OUTPUTS, ACCESS)
    assert (without.lake_bucket, without.lake_function, without.lake_retention_days) == ("", "", 0)
    of_lake = {"LakeUrl": "s3://lake-1/lake/", "LakeFunction": "lake", "LakeRetentionDays": "3650"}
    stage = Stage.of_outputs(OUTPUTS | of_lake, ACCESS)
    assert (stage.lake_bucket, stage.lake_function) == ("lake-1", "lake")
    assert stage.lake_retention_days == 3650


def test_a_missing_output_is_named() -> None:
    without = {name: value for name, value in OUTPUTS.items() if name != "BucketName"}
    with pytest.raises(KeyError, match="BucketName"):
        Stage.of_outputs(without, ACCESS)


@pytest.mark.parametrize("page", [None, ServedPage("http://127.0.0.1:8400", 124)])
def test_a_running_stage_is_read_back_as_it_was_saved(
    page: ServedPage | None, tmp_path: Path
) -> None:
    path = tmp_path / "state.json"
    assert Running.load(path) is None
    running = Running(Stage.of_outputs(OUTPUTS, ACCESS), ACCESS, 123, tmp_path, page)
    running.save(path)
    assert Running.load(path) == running
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    # It holds the credentials of the embedded AWS, and other users of this machine may look.
    assert path.stat().st_mode & 0o077 == 0


def test_a_stage_that_began_before_pages_were_served_is_read_back_without_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.json"
    Running(Stage.of_outputs(OUTPUTS, ACCESS), ACCESS, 123, tmp_path).save(path)
    content = json.loads(path.read_text())
    del content["page"]
    path.write_text(json.dumps(content))
    running = Running.load(path)
    assert running is not None
    assert running.page is None
