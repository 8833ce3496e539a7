"""The cache that workers may share: asked for, never by default; who reaches it, and what they may
do there."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from cdk.app import settings_in
from cdk.coordination_access import ACCESS_STRING
from cdk.coordination_alarms import cache_watches
from cdk.coordination_stack import CoordinationStack
from cdk.settings import STAGES, CoordinationSettings, settings_of
from tests.infra import metric_maths
from tests.infra.assembly import (
    SUBNETS,
    VPC,
    Assembly,
    Properties,
    Template,
    resources_of,
    synthesise,
    with_all_options,
)

PREFIX = "runtally-dev"


@pytest.fixture(scope="module")
def assembly() -> Assembly:
    return with_all_options(coordinated=True)


@pytest.fixture(scope="module")
def stack(assembly: Assembly) -> Template:
    assert assembly.coordination
    return assembly.coordination


def only(stack: Template, kind: str) -> Properties:
    (found,) = resources_of(stack, kind).values()
    return found


def id_of(stack: Template, path: str) -> str:
    (found,) = (
        logical_id
        for logical_id, resource in stack["Resources"].items()
        if resource["Metadata"]["aws:cdk:path"].removesuffix("/Resource").endswith(f"/{path}")
    )
    return str(found)


def group(stack: Template, path: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [id_of(stack, path), "GroupId"]}


# -- whether there is one -----------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_that_we_ship_has_it(stage: str) -> None:
    shipped = synthesise(stage)
    assert shipped.settings.coordination is None
    assert shipped.coordination is None
    for template in shipped.folder.glob("*.template.json"):
        assert "ElastiCache" not in template.read_text(), template.name


def test_the_cache_alone_is_paid_for_by_the_hour(stack: Template) -> None:
    """Users and groups cost nothing; everything that is here is named here."""
    kinds = Counter(resource["Type"] for resource in stack["Resources"].values())
    assert kinds == {
        "AWS::EC2::SecurityGroup": 2,
        "AWS::EC2::SecurityGroupIngress": 2,
        "AWS::ElastiCache::ServerlessCache": 1,
        "AWS::ElastiCache::User": 1,
        "AWS::ElastiCache::UserGroup": 1,
        "AWS::IAM::ManagedPolicy": 1,
    }


def test_nothing_in_it_outlives_its_stack(stack: Template) -> None:
    for logical_id, resource in stack["Resources"].items():
        assert resource.get("DeletionPolicy", "Delete") == "Delete", logical_id
        assert resource.get("UpdateReplacePolicy", "Delete") == "Delete", logical_id


# -- the cache ----------------------------------------------------------------------------------


def test_the_cache(stack: Template) -> None:
    """No snapshot, no key of ours, only users of the group; TLS is no choice."""
    cache = only(stack, "AWS::ElastiCache::ServerlessCache")
    assert {name: value for name, value in cache.items() if name != "Tags"} == {
        "CacheUsageLimits": {
            "DataStorage": {"Maximum": 1, "Unit": "GB"},
            "ECPUPerSecond": {"Maximum": 5_000},
        },
        "Description": "What workers of runtally dev share",
        "Engine": "valkey",
        "MajorEngineVersion": "8",
        "SecurityGroupIds": [group(stack, "CacheSecurityGroup")],
        "ServerlessCacheName": f"{PREFIX}-coordination",
        "SubnetIds": [*SUBNETS],
        "UserGroupId": {"Ref": id_of(stack, "Workers")},
    }


def test_what_it_may_come_to_is_a_setting(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    large = CoordinationSettings(VPC, SUBNETS, max_gb=10, max_ecpu_per_second=20_000)
    settings = replace(settings_of("prod"), coordination=large)
    CoordinationStack(app, settings, large)
    template = app.synth().get_stack_by_name("runtally-prod-coordination").template
    (cache,) = (
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::ElastiCache::ServerlessCache"
    )
    assert cache["CacheUsageLimits"] == {
        "DataStorage": {"Maximum": 10, "Unit": "GB"},
        "ECPUPerSecond": {"Maximum": 20_000},
    }
    (filling,) = (each for each in cache_watches(settings) if each.name == "CacheFilling")
    assert filling.above == 7.5e9


def test_two_stages_in_one_account_share_no_name(stack: Template) -> None:
    """ElastiCache asks for names, which an account has once in a region."""
    user = only(stack, "AWS::ElastiCache::User")
    group_id = only(stack, "AWS::ElastiCache::UserGroup")["UserGroupId"]
    for name in (user["UserId"], group_id):
        assert name.startswith(f"{PREFIX}-")
        assert re.fullmatch("[a-z][a-z0-9-]{,39}", name)


# -- who may do what ----------------------------------------------------------------------------


def test_workers_sign_in_by_iam_alone(stack: Template) -> None:
    user = only(stack, "AWS::ElastiCache::User")
    assert user["AuthenticationMode"] == {"Type": "iam"}
    assert not {"Passwords", "NoPasswordRequired"} & set(user)
    assert user["UserId"] == user["UserName"]
    assert user["AccessString"] == ACCESS_STRING
    users = only(stack, "AWS::ElastiCache::UserGroup")
    assert users["UserIds"] == [{"Ref": id_of(stack, "Worker")}]
    assert {user["Engine"], users["Engine"]} == {"valkey"}


def test_a_worker_may_call_named_commands_on_our_keys() -> None:
    """No category, no channel, no other key; of commands with many faces only those that are
    used, but for COMMAND, which only describes commands."""
    keys, commands = ACCESS_STRING.split(" -@all ")
    assert keys == "on ~runtally:*"
    names = commands.split()
    assert all(re.fullmatch(r"\+[a-z]+(\|[a-z]+)?", name) for name in names)
    assert len(set(names)) == len(names)
    whole = {"acl", "client", "cluster", "config", "function", "memory", "object", "script"}
    everywhere = {"flushall", "flushdb", "keys", "scan", "publish", "subscribe", "monitor", "reset"}
    assert not {f"+{name}" for name in whole | everywhere} & set(names)


def test_signing_in_is_asked_for_on_cache_and_user(stack: Template) -> None:
    policy = only(stack, "AWS::IAM::ManagedPolicy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement == {
        "Action": "elasticache:Connect",
        "Effect": "Allow",
        "Resource": [
            {"Fn::GetAtt": [id_of(stack, "Cache"), "ARN"]},
            {"Fn::GetAtt": [id_of(stack, "Worker"), "Arn"]},
        ],
    }
    assert not {"Groups", "Roles", "Users"} & set(policy)


def test_only_workers_reach_the_cache_and_they_reach_nothing_else(stack: Template) -> None:
    workers, cache = group(stack, "WorkerSecurityGroup"), group(stack, "CacheSecurityGroup")
    ports = [{"IpProtocol": "tcp", "FromPort": port, "ToPort": port} for port in (6379, 6380)]
    ingress = resources_of(stack, "AWS::EC2::SecurityGroupIngress").values()
    assert sorted(map(undescribed, ingress), key=from_port) == [
        {**port, "GroupId": cache, "SourceSecurityGroupId": workers} for port in ports
    ]
    groups = resources_of(stack, "AWS::EC2::SecurityGroup")
    out = groups["WorkerSecurityGroup"]["SecurityGroupEgress"]
    assert sorted(map(undescribed, out), key=from_port) == [
        {**port, "DestinationSecurityGroupId": cache} for port in ports
    ]
    # CDK's way to say none at all: to a group without any rule EC2 adds one that allows everything.
    (nothing,) = groups["CacheSecurityGroup"]["SecurityGroupEgress"]
    assert (nothing["CidrIp"], nothing["IpProtocol"]) == ("255.255.255.255/32", "icmp")
    for each in groups.values():
        assert each["VpcId"] == VPC
        assert "SecurityGroupIngress" not in each


def undescribed(rule: Properties) -> Properties:
    return {name: value for name, value in rule.items() if name != "Description"}


def from_port(rule: Properties) -> int:
    return int(rule["FromPort"])


def test_the_outputs_are_what_a_worker_needs(stack: Template) -> None:
    values = {name: output["Value"] for name, output in stack["Outputs"].items()}
    host = {"Fn::GetAtt": [id_of(stack, "Cache"), "Endpoint.Address"]}
    assert values == {
        "CoordinationUrl": {"Fn::Join": ["", ["valkeys://", host, ":6379"]]},
        "CoordinationCache": {"Ref": id_of(stack, "Cache")},
        "CoordinationUser": {"Ref": id_of(stack, "Worker")},
        "CoordinationSecurityGroup": group(stack, "WorkerSecurityGroup"),
        "CoordinationAccessPolicyArn": {"Ref": id_of(stack, "CoordinationAccess")},
    }


# -- alarms -------------------------------------------------------------------------------------


def of_cache(assembly: Assembly) -> dict[str, Properties]:
    alarms = assembly.resources("AWS::CloudWatch::Alarm").items()
    return {name: alarm for name, alarm in alarms if name.startswith("Cache")}


def test_alarms_read_metrics_of_this_cache(assembly: Assembly, stack: Template) -> None:
    """By a name that no import brings: the cache may go before what watches it, or after."""
    name = only(stack, "AWS::ElastiCache::ServerlessCache")["ServerlessCacheName"]
    read = {each for alarm in of_cache(assembly).values() for each in metric_maths.series_in(alarm)}
    assert {each.name for each in read} == {
        "AuthenticationFailures",
        "BytesUsedForCache",
        "Evictions",
        "IamAuthenticationThrottling",
        "ThrottledCmds",
    }
    for each in read:
        assert (each.namespace, dict(each.dimensions)) == ("AWS/ElastiCache", {"clusterId": name})


def test_either_way_to_fail_at_signing_in_is_told(assembly: Assembly) -> None:
    alarm = of_cache(assembly)["CacheSignInFailures"]
    series = metric_maths.series_in(alarm)
    assert len(series) == 2
    for each in series:
        assert metric_maths.fires(alarm, [{each: [1.0]}]), each


# -- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"vpc_id": ""}, "vpc_id is ''"),
        ({"vpc_id": "vpc-*"}, "vpc_id is 'vpc-\\*'"),
        ({"subnet_ids": ()}, "number of subnet_ids is 0; it is 2 to 3"),
        ({"subnet_ids": SUBNETS[:1]}, "number of subnet_ids is 1; it is 2 to 3"),
        (
            {"subnet_ids": (*SUBNETS, "subnet-00000001", "subnet-00000002")},
            "number of subnet_ids is 4",
        ),
        ({"subnet_ids": (SUBNETS[0], SUBNETS[0])}, "subnet_ids has one twice: subnet-0a1b"),
        ({"subnet_ids": (*SUBNETS, VPC)}, "subnet_ids has 'vpc-0a1b2c3d4e5f60718'"),
        ({"max_gb": 0}, "max_gb is 0; it is 1 to 5000"),
        ({"max_gb": 5_001}, "max_gb is 5001"),
        ({"max_ecpu_per_second": 999}, "max_ecpu_per_second is 999; it is 1000 to 15000000"),
        ({"max_ecpu_per_second": 15_000_001}, "max_ecpu_per_second is 15000001"),
    ],
)
def test_what_cannot_be_is_refused_by_name(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(CoordinationSettings(VPC, SUBNETS), **wrong)


def test_what_elasticache_takes_at_most_is_taken() -> None:
    three = (*SUBNETS, "subnet-0a1b2c3d")
    most = CoordinationSettings("vpc-0a1b2c3d", three, max_gb=5_000, max_ecpu_per_second=15_000_000)
    assert len(most.subnet_ids) == 3


def test_the_embedded_aws_has_none() -> None:
    with pytest.raises(ValueError, match="coordination is for stages on AWS"):
        replace(settings_of("local"), coordination=CoordinationSettings(VPC, SUBNETS))


def test_the_context_names_vpc_and_subnets_without_a_change_of_code() -> None:
    context = {"coordination_vpc": VPC, "coordination_subnets": ",".join(SUBNETS)}
    settings = settings_in(App(context={"stage": "prod"} | context))
    assert settings == replace(settings_of("prod"), coordination=CoordinationSettings(VPC, SUBNETS))
    assert settings_in(App(context={"stage": "prod"})) == settings_of("prod")


@pytest.mark.parametrize(
    ("half", "said"),
    [
        ({"coordination_vpc": VPC}, "subnet_ids has ''"),
        ({"coordination_subnets": ",".join(SUBNETS)}, "vpc_id is ''"),
    ],
)
def test_half_of_the_context_is_refused(half: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings_in(App(context={"stage": "prod"} | half))
