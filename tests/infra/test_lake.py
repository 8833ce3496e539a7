"""The lake: asked for, never by default; what it keeps and for how long, who reaches it, what a
query may cost."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from benchmarks import aws_prices
from cdk.bundle import ROOT
from cdk.data_stack import DataStack
from cdk.lake_catalog import PARTITIONS
from cdk.lake_queries import SAVED
from cdk.lake_stack import LakeStack
from cdk.settings import STAGES, LakeSettings, settings_of
from functions.core import keys, lake, lake_ports
from functions.core.keys import RunRef
from tests import build
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.infra import idle_bill, metric_maths
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
from tests.infra.event_pattern import passes
from tests.infra.metric_maths import fires
from tests.infra.permissions import permissions
from tests.infra.test_filters import UNWANTED, WANTED, run, stream_record
from tests.infra.test_observability import series_on_dashboards
from tests.memory_stage import MemoryStage
from tests.telling import listening

PLAIN = LakeSettings()
DAY = 86_400


@pytest.fixture(params=["plain", "whole"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    return with_lake("dev", PLAIN if request.param == "plain" else whole_lake())


def stack_of(assembly: Assembly) -> Template:
    assert assembly.lake
    return assembly.lake


@pytest.fixture
def stack(assembly: Assembly) -> Template:
    return stack_of(assembly)


def plain() -> Template:
    return stack_of(with_lake("dev", PLAIN))


def whole() -> Template:
    return stack_of(with_lake("dev", whole_lake()))


def alone(tmp_path: Path, asked: LakeSettings) -> Template:
    """The stack without the rest of its stage, which takes seconds to synthesise."""
    app = App(outdir=str(tmp_path))
    settings = replace(settings_of("dev"), lake=asked)
    code = tmp_path / "code"
    code.mkdir()
    (code / "stub.py").touch()
    LakeStack(app, settings, asked, DataStack(app, settings, None), code)
    app.synth()
    template: Template = json.loads((tmp_path / "runtally-dev-lake.template.json").read_text())
    return template


def only(stack: Template, kind: str, path: str = "") -> Properties:
    found = resources_of(stack, kind)
    return found[path] if path else next(iter(found.values()))


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


@pytest.mark.parametrize(
    ("lock_days", "kept_days"), [(0, 30 + 7), (10, 30 + 7), (37, 37), (3_650, 3_650)]
)
def test_files_go_with_retention_or_with_the_end_of_their_lock(
    tmp_path: Path, lock_days: int, kept_days: int
) -> None:
    assert settings_of("dev").retention_days == 30
    stack = alone(tmp_path, LakeSettings(object_lock_days=lock_days))
    (bucket,) = (
        each["Properties"]
        for name, each in stack["Resources"].items()
        if name.startswith("LakeBucket") and each["Type"] == "AWS::S3::Bucket"
    )
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", kept_days)
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
        ({"object_lock_days": -1}, "object_lock_days is -1; it is 0 to 36500"),
        ({"object_lock_days": 36_501}, "object_lock_days is 36501"),
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
        LakeSettings(**wrong)


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


# -- the function -------------------------------------------------------------------------------


def mapping(stack: Template) -> Properties:
    return only(stack, "AWS::Lambda::EventSourceMapping")


def test_a_poisoned_record_neither_blocks_the_stream_nor_disappears(stack: Template) -> None:
    stream = mapping(stack)
    assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert stream["BisectBatchOnFunctionError"] is True
    assert 0 < stream["MaximumRetryAttempts"] <= 20
    assert 0 < stream["MaximumRecordAgeInSeconds"] < DAY
    assert stream["ParallelizationFactor"] == 1
    assert stream["MaximumBatchingWindowInSeconds"] == 30
    destination = stream["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    queue = stack["Resources"][destination]
    assert queue["Type"] == "AWS::SQS::Queue"
    assert queue["Properties"]["MessageRetentionPeriod"] == 14 * DAY
    assert queue["Properties"]["SqsManagedSseEnabled"] is True


def test_the_stream_has_no_more_readers_than_it_takes(assembly: Assembly) -> None:
    """Two, says AWS: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html"""
    mappings = assembly.resources("AWS::Lambda::EventSourceMapping")
    assert [path for path, each in mappings.items() if "StartingPosition" in each] == [
        "Summarize/Function/Stream",
        "Lake/Function/Stream",
    ]


@pytest.fixture(scope="module")
def patterns() -> list[dict[str, Any]]:
    filters = mapping(plain())["FilterCriteria"]["Filters"]
    return [json.loads(each["Pattern"]) for each in filters]


SUMMARY = {"agents_total": {"N": "5"}}


def test_summaries_pass_and_what_ended_runs_tell_of_themselves(
    patterns: list[dict[str, Any]],
) -> None:
    for event_name in ("INSERT", "MODIFY"):
        assert passes(stream_record(event_name, keys.SUMMARY, **SUMMARY), patterns)
    for status in ("succeeded", "failed", "cancelled"):
        assert passes(run("MODIFY", status), patterns)


def test_nothing_else_passes_not_even_what_the_function_itself_writes(
    patterns: list[dict[str, Any]],
) -> None:
    unwanted = {name: record for name, record in UNWANTED.items() if "summary" not in name}
    assert len(unwanted) == len(UNWANTED) - 2
    for name, record in {**unwanted, "a new step": WANTED["a new step"]}.items():
        assert not passes(record, patterns), name
    for event_name in ("INSERT", "MODIFY"):
        assert not passes(stream_record(event_name, keys.LAKE), patterns)
    assert not passes(stream_record("REMOVE", keys.SUMMARY), patterns)


def test_an_event_that_it_is_tested_with_would_reach_it(patterns: list[dict[str, Any]]) -> None:
    for file in (ROOT / "events" / "lake").glob("*.json"):
        for record in json.loads(file.read_text())["Records"]:
            assert passes(record, patterns)


def test_it_finds_its_surroundings_and_ends_before_a_deletion_s_last_look(
    assembly: Assembly,
) -> None:
    functions = assembly.resources("AWS::Lambda::Function")
    function, erase = functions["Lake/Function"], functions["Erase/Function"]
    found = function["Environment"]["Variables"]
    assert {"RUNTALLY_TABLE", "RUNTALLY_LAKE_BUCKET"} < set(found)
    assert "RUNTALLY_LAKE_BUCKET" in erase["Environment"]["Variables"]
    quiet_s = int(erase["Environment"]["Variables"]["RUNTALLY_QUIET_S"])
    assert function["Timeout"] + 60 <= quiet_s


# -- Athena -------------------------------------------------------------------------------------


def tables(stack: Template) -> dict[str, Properties]:
    made = resources_of(stack, "AWS::Glue::Table").values()
    return {each["TableInput"]["Name"]: each["TableInput"] for each in made}


def text(value: Any) -> str:
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return name
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(map(text, parts))
    return "?"


def test_the_tables_have_the_columns_that_are_written(stack: Template) -> None:
    assert set(tables(stack)) == {table.name for table in lake.TABLES}
    for table in lake.TABLES:
        made = tables(stack)[table.name]
        columns = made["StorageDescriptor"]["Columns"]
        assert [c["Name"] for c in made["PartitionKeys"]] == list(PARTITIONS)
        assert [*PARTITIONS, *(c["Name"] for c in columns)] == [c.name for c in table.columns]
    calls = {c["Name"]: c["Type"] for c in tables(stack)["calls"]["StorageDescriptor"]["Columns"]}
    assert calls["cost_usd"] == "decimal(38,18)"
    assert calls["started_at"] == "timestamp"
    assert calls["started_ns"] == "bigint"
    phases = tables(stack)["phases"]["StorageDescriptor"]["Columns"]
    assert {c["Name"]: c["Type"] for c in phases}["agents"] == "array<string>"


def test_partitions_follow_from_the_keys_that_are_written(stack: Template) -> None:
    """Without a crawler: the template, filled in, is where the function puts a run's file."""
    run_ref, day = RunRef("acme", "run-1"), "2026-11-30"
    for table in lake.TABLES:
        told = tables(stack)[table.name]["Parameters"]
        assert told["projection.enabled"] == "true"
        assert told["projection.tenant_id.type"] == "injected"
        assert (told["projection.day.type"], told["projection.day.format"]) == (
            "date",
            "yyyy-MM-dd",
        )
        folder = text(told["storage.location.template"]).partition("/lake/")[2]
        filled = folder.replace("${tenant_id}", "acme").replace("${day}", day)
        key = lake_ports.object_of_run(table, run_ref, day)
        assert key == f"lake/{filled}run-1.parquet"


def test_nobody_gets_past_what_the_workgroup_says(stack: Template) -> None:
    workgroup = only(stack, "AWS::Athena::WorkGroup")
    assert workgroup["Name"] == "runtally-dev-lake"
    configuration = workgroup["WorkGroupConfiguration"]
    assert configuration["EnforceWorkGroupConfiguration"] is True
    assert configuration["BytesScannedCutoffPerQuery"] == 10 * 10**9
    results = configuration["ResultConfiguration"]
    assert "CatalogResults" in text(results["OutputLocation"])
    option = "SSE_S3" if stack is plain() else "SSE_KMS"
    assert results["EncryptionConfiguration"]["EncryptionOption"] == option
    (rule,) = only(stack, "AWS::S3::Bucket", "Catalog/Results")["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == 7


def test_how_much_a_query_may_scan_is_a_setting(tmp_path: Path) -> None:
    resources = alone(tmp_path, LakeSettings(athena_scan_limit_gb=500))["Resources"].values()
    (workgroup,) = (each for each in resources if each["Type"] == "AWS::Athena::WorkGroup")
    configuration = workgroup["Properties"]["WorkGroupConfiguration"]
    assert configuration["BytesScannedCutoffPerQuery"] == 500 * 10**9


def test_saved_queries_name_a_tenant_and_days_and_columns_that_there_are(stack: Template) -> None:
    saved = resources_of(stack, "AWS::Athena::NamedQuery").values()
    assert {each["Name"] for each in saved} == {each.name for each in SAVED}
    for each in SAVED:
        assert "tenant_id = 'TENANT'" in each.text
        assert "day >= " in each.text


# -- what is told -------------------------------------------------------------------------------


def test_it_is_watched() -> None:
    alarms = with_lake("dev", PLAIN).resources("AWS::CloudWatch::Alarm")
    added = set(alarms) - set(synthesise("dev").resources("AWS::CloudWatch::Alarm"))
    assert added == {"LakeBehind", "LakeErrors", "LakeDeadLetters"}
    behind = alarms["LakeBehind"]
    (age,) = metric_maths.series_in(behind)
    hour = 3_600_000.0
    assert fires(behind, 2 * [{age: [hour + 1]}])
    assert not fires(behind, [{age: [hour + 1]}, {age: [hour]}])
    (letters,) = metric_maths.series_in(alarms["LakeDeadLetters"])
    assert fires(alarms["LakeDeadLetters"], [{letters: [1.0]}])
    runbook = (ROOT / "docs" / "operations.md").read_text()
    for name in ("LakeBehind", "LakeDeadLetters", "LakeErrors"):
        anchor = alarms[name]["AlarmDescription"].partition("#")[2]
        assert f"(#{anchor}) |" in runbook
    assert "\n## Lake behind\n" in runbook


def test_what_it_publishes_is_on_a_dashboard_and_the_reverse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, capsys, "runtally/dev") as (_, told):
        stage = MemoryStage(lake=True)
        assert stage.lake
        stage.ingest(build.body(build.started(), build.step(1), build.ended()))
        stage.summarize(stage.new_stream_records())
        records = stage.lake.new_stream_records()

        def overtake_then_fail(call: str, when: str) -> None:
            if (call, when) == ("s3.put_object", "before"):
                raise client_error(call, "SlowDown")
            if (call, when) == ("dynamodb.query", "before"):
                note: dict[str, dict[str, Any]] = {"turn": {"N": "7"}, "days": {"L": []}}
                key = {keys.PARTITION: {"S": keys.run_partition(RUN)}, keys.SORT: {"S": keys.LAKE}}
                stage.dynamodb.items.setdefault((keys.run_partition(RUN), keys.LAKE), key | note)

        stage.calls.hook = overtake_then_fail
        assert stage.lake.deliver(records)
        stage.calls.hook = lambda call, when: None
        assert stage.lake.deliver(records) == []
        of_lake = frozenset({("service", "lake")})
        published = {each.name for each in told.measured() if each.dimensions == of_lake}
    shown = series_on_dashboards(with_lake("dev", PLAIN))
    assert published == {each.name for each in shown if each.dimensions == of_lake}
    assert published == {
        "Records",
        "RefusedWrites",
        "RowsWritten",
        "RunsFailed",
        "RunsWritten",
        "WriteUnits",
    }
    assert not [
        each for each in series_on_dashboards(synthesise("dev")) if of_lake == each.dimensions
    ]


def test_the_outputs_are_what_the_command_line_reads(assembly: Assembly) -> None:
    outputs = {
        name: text(output["Value"])
        for name, output in stack_of(assembly)["Outputs"].items()
        if "Export" not in output
    }
    assert set(outputs) == {"LakeUrl", "LakeFunction", "LakeDatabase", "LakeWorkgroup"}
    assert outputs["LakeUrl"].startswith("s3://LakeBucket")
    assert outputs["LakeUrl"].endswith("/lake/")
    assert outputs["LakeDatabase"] == "runtally_dev_lake"


def test_a_key_is_a_dollar_a_month() -> None:
    assert aws_prices.KMS_KEY_MONTH == 1
    assert idle_bill.idle(whole()).keys == 1
