"""Which stage a command speaks to, and what it says when it cannot."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session
from botocore import exceptions

from functions.core.errors import Unavailable
from local.aws_errors import explaining
from local.cloud import MOST_AT_ONCE, Account
from local.commands import LocalStageError
from local.connect import StageOptions, connect, find_deployed
from local.stage import Running, Stage
from tests.fakes.calls import client_error
from tests.fakes.cloud import MemoryCloud, MemoryCloudFormation
from tests.unit.local.test_stage import ACCESS, OUTPUTS

OF_DATA = {"TableName", "BucketName"}
OF_API = {name for name in OUTPUTS if name.startswith(("Api", "Service", "Dead"))}
STACKS = {
    "runtally-dev-data": {name: OUTPUTS[name] for name in OF_DATA},
    "runtally-dev-pipeline": {n: v for n, v in OUTPUTS.items() if n not in OF_DATA | OF_API},
    "runtally-dev-api": {name: OUTPUTS[name] for name in OF_API}
    | {"ApiUrl": "https://0123abcd.execute-api.eu-west-1.amazonaws.com"},
}


def cloud_with(stacks: dict[str, dict[str, str]], failure: Exception | None = None) -> MemoryCloud:
    return MemoryCloud(cloudformation=MemoryCloudFormation(stacks, failure))


def test_a_deployed_stage_is_read_from_the_outputs_of_its_three_stacks() -> None:
    cloud = cloud_with(STACKS)
    stage = find_deployed("dev", cloud)
    assert (stage.table_name, stage.ingest_function) == ("table", "ingest")
    assert stage.api_url == "https://0123abcd.execute-api.eu-west-1.amazonaws.com"
    assert stage.cloud is cloud
    assert cloud.client("cloudformation").closed


def test_a_stage_with_a_lake_knows_its_bucket() -> None:
    assert find_deployed("dev", cloud_with(STACKS)).lake_bucket == ""
    of_lake = {"runtally-dev-lake": {"LakeUrl": "s3://lake-1/lake/"}}
    assert find_deployed("dev", cloud_with(STACKS | of_lake)).lake_bucket == "lake-1"


def test_a_lake_that_cannot_be_looked_for_is_not_taken_for_none() -> None:
    """Or its files would outlive their tenant."""
    denied = client_error("DescribeStacks", "AccessDenied", "not allowed")

    class Denying(MemoryCloudFormation):
        def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
            if StackName.endswith("-lake"):
                raise denied
            return super().describe_stacks(StackName=StackName)

    with pytest.raises(LocalStageError, match="not allowed"):
        find_deployed("dev", MemoryCloud(cloudformation=Denying(STACKS)))


def test_a_stack_that_is_not_there_is_named_with_its_region() -> None:
    without = {name: outputs for name, outputs in STACKS.items() if name != "runtally-dev-api"}
    with pytest.raises(LocalStageError) as error:
        find_deployed("dev", cloud_with(without))
    assert error.value.failed == "There is no stack runtally-dev-api in eu-west-1."
    assert "--region" in error.value.advice
    assert "cdk deploy --all -c stage=dev" in error.value.advice


def test_an_output_that_is_missing_is_named() -> None:
    """A stack of an older version, or one that is still being made and has no outputs at all."""
    with pytest.raises(LocalStageError, match="TableName") as error:
        find_deployed("dev", cloud_with(STACKS | {"runtally-dev-data": {}}))
    assert "cdk deploy" in error.value.advice


def test_a_refusal_of_cloudformation_is_told_in_its_own_words() -> None:
    message = "User: arn:aws:iam::1:user/me is not authorized to perform: x:DescribeStacks"
    denied = client_error("DescribeStacks", "AccessDenied", message)
    with pytest.raises(LocalStageError, match="x:DescribeStacks") as error:
        find_deployed("dev", cloud_with(STACKS, denied))
    assert "allowed" in error.value.advice


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        (client_error("GetItem", "AccessDeniedException"), "allowed"),
        (client_error("GetItem", "ExpiredTokenException"), "aws sso login"),
        (client_error("GetItem", "UnrecognizedClientException"), "aws sso login"),
        (client_error("GetItem", "ResourceNotFoundException"), "deleted"),
        (client_error("GetItem", "ThrottlingException"), "again"),
        (exceptions.NoCredentialsError(), "aws sso login"),
        (exceptions.UnauthorizedSSOTokenError(), "aws sso login"),
        (exceptions.ProfileNotFound(profile="p"), "list-profiles"),
        (exceptions.NoRegionError(), "--region"),
        (exceptions.EndpointConnectionError(endpoint_url="https://x"), "network"),
        (Unavailable("DynamoDB get_item: throttled"), "again"),
    ],
    ids=str,
)
def test_what_aws_refuses_says_what_to_do(refusal: Exception, advice: str) -> None:
    with pytest.raises(LocalStageError) as error, explaining():
        raise refusal
    assert str(refusal) in error.value.failed
    assert advice in error.value.advice


def test_what_lies_behind_unavailable_decides() -> None:
    with pytest.raises(LocalStageError, match="AccessDeniedException") as error, explaining():
        raise Unavailable("DynamoDB get_item") from client_error("GetItem", "AccessDeniedException")
    assert "allowed" in error.value.advice


def test_a_defect_of_ours_is_not_explained_away() -> None:
    with pytest.raises(KeyError), explaining():
        raise KeyError("ours")


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without any AWS configuration or credentials, and without a stage."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "RUNTALLY_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def left_running() -> Running:
    return Running(Stage.of_outputs(OUTPUTS, ACCESS), ACCESS, 123, Path("folder"))


@pytest.mark.parametrize("name", [None, "local"])
def test_without_a_name_it_is_the_stage_that_was_left_running(
    name: str | None, nobody: pytest.MonkeyPatch
) -> None:
    stage = connect(name, None, None, left_running=left_running)
    assert stage == left_running().stage


def test_no_stage_left_running_says_how_to_get_one(nobody: pytest.MonkeyPatch) -> None:
    with pytest.raises(LocalStageError, match="no stage up") as error:
        connect(None, None, None, left_running=lambda: None)
    assert "runtally up" in error.value.advice


def test_a_deployed_stage_needs_a_profile_a_region_and_credentials_in_this_order(
    nobody: pytest.MonkeyPatch,
) -> None:
    for profile, region, advice in (
        ("no-such-profile", None, "list-profiles"),
        (None, None, "--region"),
        (None, "eu-west-1", "aws sso login"),
    ):
        with pytest.raises(LocalStageError) as error:
            connect("dev", profile, region, left_running=left_running)
        assert advice in error.value.advice


def test_the_environment_names_the_stage_unless_the_command_does(
    nobody: pytest.MonkeyPatch,
) -> None:
    nobody.setenv("RUNTALLY_STAGE", "dev")
    with pytest.raises(LocalStageError, match="region"):
        connect(None, None, None, left_running=left_running)
    assert connect("local", None, None, left_running=left_running) == left_running().stage


def test_an_accounts_clients_are_those_of_its_session() -> None:
    session = Session("key", "secret", region_name="eu-west-3")
    with closing(Account(session).client("sqs")) as sqs:
        assert sqs.meta.region_name == "eu-west-3"
        assert sqs.meta.config.retries["total_max_attempts"] == 5


def test_an_invocation_may_take_as_long_as_the_slowest_function() -> None:
    """And is repeated by botocore as all else: what is invoked can be done again."""
    session = Session("key", "secret", region_name="eu-west-3")
    with closing(Account(session).client("lambda")) as functions:
        config = functions.meta.config
        assert config.read_timeout > 300
        assert config.max_pool_connections == MOST_AT_ONCE
        assert config.retries["total_max_attempts"] == 5


def test_a_command_leaves_the_stage_closed_and_its_refusals_explained() -> None:
    dynamodb = Denying()
    stage = Stage.of_outputs({**OUTPUTS, "ApiUrl": "https://api"}, MemoryCloud(dynamodb=dynamodb))

    def connect(*asked: str | None) -> Stage:
        assert asked == ("dev", "p", "r")
        return stage

    options = StageOptions(stage="dev", profile="p", region="r")
    with pytest.raises(LocalStageError, match="AccessDenied"), options.connected(connect) as found:
        found.dynamodb.describe_table(TableName="table")
    assert dynamodb.closed


class Denying:
    """A client that is allowed nothing."""

    closed = False

    def describe_table(self, **_: str) -> None:
        raise client_error("DescribeTable", "AccessDenied")

    def close(self) -> None:
        self.closed = True
