"""The stacks as a whole: what they are made of, what they cost when idle, what checks say."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdk.bundle import ROOT
from cdk.settings import STAGES, LakeSettings, settings_of
from tests.infra.assembly import (
    DEPLOYS_THE_PAGE,
    STACKS,
    SUBNETS,
    VPC,
    Assembly,
    Properties,
    context_of,
    new_app,
    resources_of,
    synthesise,
    whole_lake,
    with_all_options,
    with_lake,
)

# All of them cost nothing while nothing happens, apart from what is stored and what asks queues.
PAID_BY_USE = {
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudFront::Distribution",
    "AWS::CloudFront::OriginAccessControl",
    "AWS::CloudFront::ResponseHeadersPolicy",
    "AWS::DynamoDB::GlobalTable",
    "AWS::Events::Rule",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Function",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::Logs::QueryDefinition",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "Custom::CDKBucketDeployment",
}

# By the month, some cents or dollars each: docs/operations.md has the bill.
PAID_BY_THE_MONTH = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"}

# Properties that turn a thing paid by use into one paid by the hour.
ALWAYS_ON = {
    "KmsMasterKeyId",
    "NatGatewayId",
    "ProvisionedConcurrentExecutions",
    "ProvisionedConcurrencyConfig",
    "ProvisionedPollerConfig",
    "ProvisionedThroughput",
    "ReservedConcurrentExecutions",
    "VpcConfig",
    "WarmThroughput",
    "WriteProvisionedThroughputSettings",
}

FIXED_NAMES = {
    "BucketName",
    "FunctionName",
    "LogGroupName",
    "ManagedPolicyName",
    "QueueName",
    "RoleName",
    "TableName",
}


def our_functions(assembly: Assembly) -> dict[str, Properties]:
    functions = assembly.resources("AWS::Lambda::Function")
    return {path: each for path, each in functions.items() if path != DEPLOYS_THE_PAGE}


def names_in(value: Any) -> Iterator[str]:
    """Of all properties, however deep."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from names_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each)


def test_nothing_is_always_on(assembly: Assembly) -> None:
    """No NAT gateway, no cache node, no provisioned capacity or concurrency: no type and no
    property that is not known to be free of them. But for one stack, which nobody has unasked:
    what is in it stands in test_coordination.py."""
    assert bool(assembly.coordination) == bool(assembly.settings.coordination)
    for template in assembly.templates:
        if template is assembly.coordination:
            continue
        for resource in template["Resources"].values():
            assert resource["Type"] in PAID_BY_USE | PAID_BY_THE_MONTH
            assert not ALWAYS_ON & set(names_in(resource.get("Properties", {})))
    by_the_month = [
        template
        for template in assembly.templates
        if PAID_BY_THE_MONTH & {resource["Type"] for resource in template["Resources"].values()}
    ]
    assert by_the_month == ([] if assembly.settings.is_local else [assembly.observability])
    (table,) = resources_of(assembly.data, "AWS::DynamoDB::GlobalTable").values()
    assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_no_resource_has_a_fixed_name(assembly: Assembly) -> None:
    """A fixed name stands in the way of a second stage, and of every replacement."""
    for template in assembly.templates:
        for resource in template["Resources"].values():
            # These name the function that they are for.
            if resource["Type"] not in {
                "AWS::Lambda::EventInvokeConfig",
                "AWS::Lambda::EventSourceMapping",
                "AWS::Lambda::Permission",
            }:
                assert not FIXED_NAMES & set(resource.get("Properties", {}))


def test_every_function_logs_to_a_group_that_forgets(assembly: Assembly) -> None:
    groups = assembly.resources("AWS::Logs::LogGroup")
    functions = our_functions(assembly)
    of_functions = {path.replace("/Function", "/Logs") for path in functions}
    of_the_page = set() if assembly.settings.is_local else {"PageFiles/Logs"}
    assert set(groups) == of_functions | of_the_page | {"AccessLogs"}
    for group in groups.values():
        assert 7 <= group["RetentionInDays"] <= 90
    for path, function in functions.items():
        group_id = function["LoggingConfig"]["LogGroup"]["Ref"]
        assert group_id.startswith(path.replace("/Function", "/Logs").replace("/", ""))
        assert function["LoggingConfig"]["LogFormat"] == "JSON"


def test_functions_run_on_python_3_13_and_arm64(aws_assembly: Assembly) -> None:
    functions = our_functions(aws_assembly)
    assert len(functions) == (7 if aws_assembly.settings.service_entries else 6)
    for function in functions.values():
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        assert "TracingConfig" not in function


def test_the_outputs_are_those_that_others_read(assembly: Assembly) -> None:
    names = {
        name
        for template in assembly.templates
        for name, output in template["Outputs"].items()
        if "Export" not in output
    }
    of_entries = {
        "DeadJobsFunction",
        "JobWorkerAccessPolicyArn",
        "ServiceEntryDeadLetterUrls",
        "ServiceEntryQueueUrls",
    }
    of_the_cache = {
        "CoordinationAccessPolicyArn",
        "CoordinationCache",
        "CoordinationSecurityGroup",
        "CoordinationUrl",
        "CoordinationUser",
    }
    optional = set() if assembly.settings.is_local else {"AlarmTopicArn", "PageUrl"}
    optional |= of_entries if assembly.settings.service_entries else set()
    optional |= of_the_cache if assembly.settings.coordination else set()
    assert names == optional | {
        "ApiFunction",
        "ApiId",
        "ApiUrl",
        "BucketName",
        "EraseFunction",
        "ErasureDeadLetterUrl",
        "ErasureQueueUrl",
        "EventQueueDeadLetterUrl",
        "EventQueueUrl",
        "IngestFunction",
        "QuietS",
        "RecountDeadLetterUrl",
        "RecountFunction",
        "RecountQueueUrl",
        "RetentionDays",
        "Stage",
        "SummarizeFunction",
        "SweepFunction",
        "TableName",
        "WorkerAccessPolicyArn",
    }


def test_synthesis_needs_no_network_and_no_credentials(tmp_path: Path) -> None:
    """As CDK's command line starts it, in a bare environment; and the same templates come out.

    With the cache, too, whose VPC and subnets nobody looks up.
    """
    connections = tmp_path / "connections.txt"
    guard = Path(__file__).with_name("refuse_network.cjs")
    in_context = {"coordination_vpc": VPC, "coordination_subnets": ",".join(SUBNETS)}
    program = (
        "import pytest_socket, runpy; pytest_socket.disable_socket();"
        "runpy.run_module('cdk.app', run_name='__main__')"
    )
    subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "NODE_OPTIONS": f"--require {guard}",
            "RUNTALLY_NETWORK_LOG": str(connections),
            "CDK_OUTDIR": str(tmp_path / "out"),
            "CDK_CONTEXT_JSON": json.dumps(context_of("prod") | in_context),
        },
        check=True,
    )
    assert set(connections.read_text().splitlines()) == {"armed"}
    for name in set(STACKS) - {"lake"}:
        file = f"runtally-prod-{name}.template.json"
        written = (tmp_path / "out" / file).read_text()
        assert written == (synthesise("prod", coordinated=True).folder / file).read_text()


def test_cdk_nag_stops_a_synthesis_that_it_finds_fault_with(tmp_path: Path) -> None:
    """So every stage that could be synthesised is clean, but for what has its reason next to it."""
    from aws_cdk import aws_sqs as sqs  # noqa: PLC0415

    app = new_app(settings_of("prod"), tmp_path)
    sqs.Queue(app.node.find_child("runtally-prod-pipeline"), "WithoutDeadLetters")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text())
    rules = {
        each["ruleName"] for plugin in report["pluginReports"] for each in plugin["violations"]
    }
    assert rules == {"AwsSolutions-SQS3", "AwsSolutions-SQS4"}


def test_cfn_lint_finds_nothing() -> None:
    lakes = [with_lake("dev", LakeSettings(30)), with_lake("dev", whole_lake())]
    assemblies = [*map(synthesise, STAGES), with_all_options(coordinated=True), *lakes]
    templates = [str(file) for each in assemblies for file in each.folder.glob("*.template.json")]
    assert len(templates) == sum(len(each.templates) for each in assemblies)
    # W3005: CDK names dependencies that follow from references, too.
    cfn_lint = str(Path(sys.executable).with_name("cfn-lint"))
    command = [cfn_lint, "--ignore-checks", "W3005", "--template"]
    done = subprocess.run([*command, *templates], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_an_unknown_stage_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no stage 'production': choose one of local, dev, prod"):
        settings_of("production")
