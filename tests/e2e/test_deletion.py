"""A run is deleted on the embedded AWS: by HTTP, by the command line, with all its versions."""

import time

import pytest

from functions.adapters.sqs import SqsErasures
from functions.core import keys
from local import waiting
from local.queues import length
from local.reading import register
from local.stage import Stage
from tests import command_line
from tests.build import ended, log, started, step
from tests.e2e.http import DeployedApi, key_of
from tests.e2e.pipeline import Pipeline

pytestmark = pytest.mark.xdist_group("stage")

WITHIN_S = 120
"""The stage's quiet time is 20 seconds, on AWS ten minutes."""


def recorded(pipeline: Pipeline) -> None:
    large = step(1, payload={"text": "語" * 400_000})
    pipeline.send(pipeline.body(started(), step(2), log(3, "x")), pipeline.body(large, ended()))
    pipeline.summarised(steps=2)


def left_of(pipeline: Pipeline) -> tuple[list[str], list[str]]:
    """Sort keys of items, and keys of all versions and delete markers."""
    stage = pipeline.stage
    partition = keys.run_partition(pipeline.ref)
    answer = stage.dynamodb.query(
        TableName=stage.table_name,
        KeyConditionExpression="PK = :pk",
        ExpressionAttributeValues={":pk": {"S": partition}},
        ConsistentRead=True,
    )
    objects: list[str] = []
    for prefix in (keys.objects_of_run(pipeline.ref), keys.inbox_prefix(pipeline.ref)):
        found = stage.s3.list_object_versions(Bucket=stage.bucket_name, Prefix=prefix)
        objects += [v["Key"] for v in found.get("Versions", ())]
        objects += [m["Key"] for m in found.get("DeleteMarkers", ())]
    return [item["SK"]["S"] for item in answer["Items"]], objects


def deleted_over_http(pipeline: Pipeline) -> None:
    recorded(pipeline)
    items, objects = left_of(pipeline)
    assert len(items) >= 6
    assert len(objects) >= 3
    api = DeployedApi(pipeline.stage.api_url, key_of(pipeline.stage, "acme"))
    run = f"/pipeline-runs/{pipeline.ref.run_id}"
    accepted = api.send("DELETE", run)
    assert accepted.status == 202
    place = accepted.headers["location"].removeprefix("/api/v1")
    assert api.get(run).status == 404
    pipeline.send(pipeline.body(step(4), ended(status="failed")))  # too late

    def receipt() -> dict[str, object] | None:
        answer = api.get(place)
        assert answer.status == 200
        return answer.json if answer.json["status"] == "finished" else None

    finished = waiting.until(receipt, WITHIN_S, "The deletion was not finished")
    assert left_of(pipeline) == (["RUN"], [])
    assert finished["items"] == len(items) - 1
    assert (finished["objects"], finished["versions"]) == (len(set(objects)), len(objects))
    assert api.get(run).status == 404


def test_nothing_is_left_of_a_run_that_is_deleted_over_http(pipeline: Pipeline) -> None:
    deleted_over_http(pipeline)


def test_the_command_line_deletes_a_run_and_waits(
    pipeline: Pipeline, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    register(stage, ["acme"])
    recorded(pipeline)
    command_line.run(
        "delete", "run", pipeline.ref.run_id, "--tenant", "acme", "--wait",
        stage=stage, sleep=time.sleep,
    )  # fmt: skip
    assert "not yet" not in capsys.readouterr().out
    assert left_of(pipeline) == (["RUN"], [])


def test_a_tenant_is_deleted_with_all_that_is_its_own(
    pipeline: Pipeline, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    of_other = Pipeline(stage, pipeline.ref.run_id)
    of_other.ref = pipeline.ref._replace(tenant_id="leaving")
    register(stage, ["leaving"])
    key_of(stage, "leaving")
    for each in (pipeline, of_other):
        recorded(each)
    code = command_line.run(
        "delete",
        "tenant",
        "leaving",
        "--yes",
        "--wait",
        stage=stage,
        sleep=time.sleep,
        clock=time.time_ns,
    )
    assert code == 0
    assert "Nothing is left of leaving." in capsys.readouterr().out
    assert left_of(of_other) == (["RUN"], [])
    assert len(left_of(pipeline)[0]) >= 6


def test_a_message_for_a_run_without_a_tombstone_erases_nothing(pipeline: Pipeline) -> None:
    recorded(pipeline)
    before = left_of(pipeline)
    stage = pipeline.stage
    SqsErasures(stage.sqs, stage.erasure_queue_url).request_erasure(pipeline.ref)
    waiting.until(
        lambda: length(stage, stage.erasure_queue_url) == 0 or None, WITHIN_S, "Not taken"
    )
    assert left_of(pipeline) == before
