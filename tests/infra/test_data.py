"""The table and the buckets: kept, encrypted, recoverable, and emptied in the right order."""

import pytest

from cdk.settings import STAGES
from functions.core import keys
from tests.infra.assembly import Assembly, Properties, path_of, resources_of, synthesise

STATEFUL_TYPES = {
    "AWS::DynamoDB::GlobalTable",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::SQS::Queue",
}


def table(assembly: Assembly) -> Properties:
    (found,) = resources_of(assembly.data, "AWS::DynamoDB::GlobalTable").values()
    return found


def buckets(assembly: Assembly) -> dict[str, Properties]:
    found = assembly.resources("AWS::S3::Bucket")
    of_the_page = set() if assembly.settings.is_local else {"Page"}
    assert set(found) == {"Bucket", "FailedBatches"} | of_the_page
    return found


def test_nothing_that_holds_data_goes_with_its_stack(aws_assembly: Assembly) -> None:
    for template in aws_assembly.templates:
        for resource in template["Resources"].values():
            if resource["Type"] in STATEFUL_TYPES:
                assert resource["DeletionPolicy"] == "Retain", path_of(resource)
                assert resource["UpdateReplacePolicy"] == "Retain", path_of(resource)


def test_the_table_can_neither_be_deleted_nor_lost(aws_assembly: Assembly) -> None:
    (replica,) = table(aws_assembly)["Replicas"]
    assert replica["DeletionProtectionEnabled"] is True
    recovery = replica["PointInTimeRecoverySpecification"]
    assert recovery["PointInTimeRecoveryEnabled"] is True


def test_the_local_stage_leaves_nothing_behind() -> None:
    (replica,) = table(synthesise("local"))["Replicas"]
    assert replica["DeletionProtectionEnabled"] is False
    for template in synthesise("local").templates:
        for resource in template["Resources"].values():
            if resource["Type"] in STATEFUL_TYPES:
                assert resource["DeletionPolicy"] == "Delete", path_of(resource)


def test_the_table_has_the_keys_that_the_code_builds(assembly: Assembly) -> None:
    def schema(of: Properties) -> dict[str, str]:
        return {key["KeyType"]: key["AttributeName"] for key in of["KeySchema"]}

    properties = table(assembly)
    assert schema(properties) == {"HASH": keys.PARTITION, "RANGE": keys.SORT}
    indexes = {index["IndexName"]: index for index in properties["GlobalSecondaryIndexes"]}
    by_tenant, open_runs = indexes.pop(keys.BY_TENANT), indexes.pop(keys.OPEN_RUNS)
    assert not indexes
    assert schema(by_tenant) == {"HASH": keys.BY_TENANT_PARTITION, "RANGE": keys.BY_TENANT_SORT}
    assert schema(open_runs) == {"HASH": keys.OPEN_RUNS_PARTITION, "RANGE": keys.OPEN_RUNS_SORT}
    assert {each["AttributeType"] for each in properties["AttributeDefinitions"]} == {"S"}


def test_indexes_hold_so_little_that_steps_never_touch_them(assembly: Assembly) -> None:
    projections = [each["Projection"] for each in table(assembly)["GlobalSecondaryIndexes"]]
    assert projections == [
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["status", "pipeline"]},
        {"ProjectionType": "KEYS_ONLY"},
    ]


def test_the_stream_shows_items_before_and_after(assembly: Assembly) -> None:
    assert table(assembly)["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_items_expire(assembly: Assembly) -> None:
    expected = {"AttributeName": keys.EXPIRES, "Enabled": True}
    assert table(assembly)["TimeToLiveSpecification"] == expected


@pytest.mark.parametrize("stage", STAGES)
def test_objects_outlive_their_items(stage: str) -> None:
    assembly = synthesise(stage)
    rule, dead_letters = buckets(assembly)["Bucket"]["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == dead_letters["Status"] == "Enabled"
    assert "Prefix" not in rule
    assert dead_letters["Prefix"] == keys.DEAD_LETTERS
    assert dead_letters["ExpirationInDays"] == 14 + 4 + 14 + 1  # a letter, moved back, once more
    assert dead_letters["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert rule["ExpirationInDays"] == STAGES[stage].retention_days + 7
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    ingest = resources_of(assembly.pipeline, "AWS::Lambda::Function")["Ingest/Function"]
    told = ingest["Environment"]["Variables"]["RUNTALLY_RETENTION_DAYS"]
    assert told == assembly.pipeline["Outputs"]["RetentionDays"]["Value"]
    assert told == str(STAGES[stage].retention_days)


def test_failed_batches_are_kept_as_long_as_a_dead_letter(assembly: Assembly) -> None:
    (rule,) = buckets(assembly)["FailedBatches"]["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 14
    assert rule["Status"] == "Enabled"


def test_runs_are_versioned(assembly: Assembly) -> None:
    assert buckets(assembly)["Bucket"]["VersioningConfiguration"] == {"Status": "Enabled"}


def test_no_bucket_is_public_or_in_the_clear(assembly: Assembly) -> None:
    for bucket in buckets(assembly).values():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        assert len(bucket["PublicAccessBlockConfiguration"]) == 4
        assert bucket["OwnershipControls"] == {
            "Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]
        }


def test_no_queue_is_in_the_clear(assembly: Assembly) -> None:
    queues = assembly.resources("AWS::SQS::Queue")
    assert len(queues) == 6 + 2 * len(assembly.settings.service_entries)
    for queue in queues.values():
        assert queue["SqsManagedSseEnabled"] is True


def test_every_bucket_and_queue_refuses_plain_http(aws_assembly: Assembly) -> None:
    refusing = [
        path_of(resource).removesuffix("/Policy")
        for template in aws_assembly.templates
        for resource in template["Resources"].values()
        for statement in resource.get("Properties", {})
        .get("PolicyDocument", {})
        .get("Statement", [])
        if statement["Effect"] == "Deny"
        and statement["Principal"] == {"AWS": "*"}
        and statement["Action"] in {"s3:*", "sqs:*"}
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    buckets_and_queues = {"AWS::S3::Bucket", "AWS::SQS::Queue"}
    assert sorted(refusing) == sorted(
        path for kind in buckets_and_queues for path in aws_assembly.resources(kind)
    )
    assert len(refusing) >= 6
