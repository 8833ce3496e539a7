"""The lake: asked for, never by default; what it keeps and for how long, and who reaches it."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import aws_prices
from cdk.bundle import ROOT
from cdk.settings import STAGES, LakeSettings, settings_of
from tests.infra import idle_bill
from tests.infra.assembly import (
    Assembly,
    Properties,
    Template,
    path_of,
    resources_of,
    synthesise,
    whole_lake,
    with_lake,
)
from tests.infra.lake.stacks import PLAIN, alone, only, plain, stack_of, text, whole
from tests.infra.permissions import permissions

# -- whether there is one -----------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_that_we_ship_has_it(stage: str) -> None:
    """Nor does anything else know of it."""
    shipped = synthesise(stage)
    assert shipped.settings.lake is None
    assert shipped.lake is None
    for template in shipped.folder.glob("*.template.json"):
        text = template.read_text().lower()
        words = ("::glue::", "::athena::", "::kms::", "lakebucket", "lake_bucket", "/lake/")
        assert not [word for word in words if word in text]
    assert not [line for line in permissions(shipped) if "lake" in line.lower()]


def test_the_embedded_aws_has_none() -> None:
    with pytest.raises(ValueError, match="lake is for stages on AWS"):
        replace(settings_of("local"), lake=PLAIN)


def test_it_is_paid_by_use_but_for_a_key_of_ones_own() -> None:
    """Everything that is in it is named here."""
    by_use = {
        "AWS::Athena::NamedQuery": 4,
        "AWS::Athena::WorkGroup": 1,
        "AWS::Glue::Database": 1,
        "AWS::Glue::Table": 3,
        "AWS::IAM::Policy": 1,
        "AWS::IAM::Role": 1,
        "AWS::Lambda::EventSourceMapping": 1,
        "AWS::Lambda::Function": 1,
        "AWS::Logs::LogGroup": 1,
        "AWS::S3::Bucket": 2,
        "AWS::S3::BucketPolicy": 2,
        "AWS::SQS::Queue": 1,
        "AWS::SQS::QueuePolicy": 1,
    }
    kinds = Counter(each["Type"] for each in plain()["Resources"].values())
    assert kinds == by_use
    kinds = Counter(each["Type"] for each in whole()["Resources"].values())
    assert kinds == {**by_use, "AWS::KMS::Key": 1}


def test_the_runbook_has_its_idle_bill() -> None:
    """Its alarms stand in another stack."""
    without = idle_bill.idle_by_stack(synthesise("dev"))
    text = (ROOT / "docs" / "operations.md").read_text()
    for asked, said in ((PLAIN, "lake"), (whole_lake(), "lake, with a key of its own")):
        idle = idle_bill.idle_by_stack(with_lake("dev", asked))
        dollars = sum(each.dollars for each in idle.values())
        dollars -= sum(each.dollars for each in without.values())
        (row,) = re.findall(rf"^\| {said} \|.*\| \$([\d.]+) \|$", text, re.MULTILINE)
        assert float(row) == pytest.approx(dollars), said


# -- what is kept, and for how long -------------------------------------------------------------


def test_what_holds_data_outlives_its_stack(stack: Template) -> None:
    kept = {"AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SQS::Queue", "AWS::Logs::LogGroup"}
    for resource in stack["Resources"].values():
        if resource["Type"] in kept:
            assert resource["DeletionPolicy"] == "Retain", path_of(resource)
            assert resource["UpdateReplacePolicy"] == "Retain", path_of(resource)


def files(stack: Template) -> Properties:
    return only(stack, "AWS::S3::Bucket", "LakeBucket")


def test_files_are_private_versioned_and_encrypted(stack: Template) -> None:
    assert files(stack)["VersioningConfiguration"] == {"Status": "Enabled"}
    for bucket in resources_of(stack, "AWS::S3::Bucket").values():
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        if stack is plain():
            assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
        else:
            assert rule["BucketKeyEnabled"] is True
            assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    for policy in resources_of(stack, "AWS::S3::BucketPolicy").values():
        assert "aws:SecureTransport" in json.dumps(policy)


def test_a_lock_holds_against_everybody_for_its_time_and_only_where_it_is_asked_for() -> None:
    """A bucket can be locked from its beginning or never: so it can, and another day may be."""
    assert files(plain())["ObjectLockEnabled"] is True
    assert "ObjectLockConfiguration" not in files(plain())
    locked = files(whole())
    assert locked["ObjectLockEnabled"] is True
    assert locked["ObjectLockConfiguration"] == {
        "ObjectLockEnabled": "Enabled",
        "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 3_650}},
    }
    # Athena's results lie elsewhere: each would be kept as long.
    assert "ObjectLockEnabled" not in only(whole(), "AWS::S3::Bucket", "Catalog/Results")


def test_files_go_with_the_retention_of_the_lake(tmp_path: Path) -> None:
    stack = alone(tmp_path, LakeSettings(retention_days=90, object_lock_days=90))
    (bucket,) = (
        each["Properties"]
        for name, each in stack["Resources"].items()
        if name.startswith("LakeBucket") and each["Type"] == "AWS::S3::Bucket"
    )
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 90)
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}


def test_older_files_move_to_cheaper_tiers_that_can_still_be_asked() -> None:
    (rule,) = files(plain())["LifecycleConfiguration"]["Rules"]
    assert "Transitions" not in rule
    (rule,) = files(whole())["LifecycleConfiguration"]["Rules"]
    assert rule["Transitions"] == [
        {"StorageClass": "STANDARD_IA", "TransitionInDays": 30},
        {"StorageClass": "GLACIER_IR", "TransitionInDays": 90},
    ]


def test_the_key_is_turned_every_year() -> None:
    assert only(whole(), "AWS::KMS::Key")["EnableKeyRotation"] is True


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"retention_days": 0}, "retention_days is 0; it is 1 to 36500"),
        ({"object_lock_days": -1}, "object_lock_days is -1; it is 0 to 36500"),
        ({"object_lock_days": 36_501}, "object_lock_days is 36501"),
        ({"object_lock_days": 3_651}, "object_lock_days is 3651: files are kept for 3650 days"),
        ({"archive_after_days": 3_650}, "archive_after_days is 3650: files are kept for 3650 days"),
        ({"infrequent_after_days": 29}, "infrequent_after_days is 29; it is 30 to"),
        ({"archive_after_days": 0}, "archive_after_days is 0; it is 30 to"),
        (
            {"infrequent_after_days": 60, "archive_after_days": 89},
            "archive_after_days is 89; it is 90 to",
        ),
        ({"athena_scan_limit_gb": 0}, "athena_scan_limit_gb is 0; it is 1 to 10000"),
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LakeSettings(**{"retention_days": 3_650} | wrong)


def test_it_keeps_runs_for_as_long_as_the_table_or_longer() -> None:
    stage = settings_of("dev")
    assert replace(stage, lake=LakeSettings(retention_days=30)).lake
    with pytest.raises(ValueError, match="the lake's retention_days is 29: "):
        replace(stage, lake=LakeSettings(retention_days=29))


def test_a_key_is_a_dollar_a_month() -> None:
    assert aws_prices.KMS_KEY_MONTH == 1
    assert idle_bill.idle(whole()).keys == 1


# -- who may do what ----------------------------------------------------------------------------


def of_lake(lake: LakeSettings) -> list[str]:
    """What a lake adds to what the stage allows."""
    without = set(permissions(synthesise("dev")))
    return [line for line in permissions(with_lake("dev", lake)) if line not in without]


ITEMS = "Table if dynamodb:LeadingKeys ForAllValues:StringLike PIPELINERUN#*"
ADDED = [
    "erase | s3:DeleteObject | LakeBucket/lake/*",
    "erase | s3:DeleteObjectVersion | LakeBucket/lake/*",
    "erase | s3:GetObjectRetention | LakeBucket/lake/*",
    "erase | s3:ListBucketVersions | LakeBucket if s3:prefix StringLike lake/*",
    "lake | dynamodb:DescribeStream | Table.StreamArn",
    f"lake | dynamodb:GetItem | {ITEMS}",
    "lake | dynamodb:GetRecords | Table.StreamArn",
    "lake | dynamodb:GetShardIterator | Table.StreamArn",
    "lake | dynamodb:ListStreams | Table.StreamArn",
    f"lake | dynamodb:PutItem | {ITEMS}",
    f"lake | dynamodb:Query | {ITEMS}",
    "lake | logs:CreateLogStream | Lake/Logs",
    "lake | logs:PutLogEvents | Lake/Logs",
    "lake | s3:DeleteObject | LakeBucket/lake/*",
    "lake | s3:GetObject | LakeBucket/lake/*",
    "lake | s3:PutObject | LakeBucket/lake/*",
    "lake | sqs:SendMessage | LakeDeadLetters",
]


def test_each_may_do_what_it_does_and_nothing_else() -> None:
    """Nobody but erase deletes a version, or asks how long a lock holds one."""
    assert of_lake(PLAIN) == ADDED
    assert of_lake(whole_lake()) == sorted(
        [
            *ADDED,
            "lake | kms:GenerateDataKey | Key",
        ]
    )


def test_the_outputs_are_what_the_command_line_reads(assembly: Assembly) -> None:
    outputs = {
        name: text(output["Value"])
        for name, output in stack_of(assembly)["Outputs"].items()
        if "Export" not in output
    }
    assert set(outputs) == {
        *("LakeUrl", "LakeFunction", "LakeRetentionDays"),
        *("LakeDatabase", "LakeWorkgroup", "LakeResults"),
    }
    assert outputs["LakeResults"].endswith("/athena/")
    assert outputs["LakeUrl"].startswith("s3://LakeBucket")
    assert outputs["LakeUrl"].endswith("/lake/")
    assert outputs["LakeDatabase"] == "runtally_dev_lake"
