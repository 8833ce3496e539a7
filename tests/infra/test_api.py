"""The HTTP API: its routes, its limits, what it logs, and who else's pages may read it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from cdk.service_entries import JOB_RETENTION, JOB_VISIBILITY
from cdk.settings import STAGES
from functions.api.service_entries import InvocationWanted
from runtally import lease, wire
from tests.infra.assembly import Assembly, Properties, synthesise, with_all_options

DEV = STAGES["dev"]


def only(assembly: Assembly, kind: str) -> Properties:
    (found,) = assembly.resources(f"AWS::ApiGatewayV2::{kind}").values()
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_the_api_and_two_routes_of_otlp_lead_to_the_function(stage: str) -> None:
    routes = synthesise(stage).resources("AWS::ApiGatewayV2::Route").values()
    assert sorted(route["RouteKey"] for route in routes) == [
        "ANY /api/v1/{proxy+}",
        "POST /v1/logs",
        "POST /v1/traces",
    ]


def test_no_route_takes_the_requests_that_ask_for_permission() -> None:
    """They bring no API key. API Gateway answers them, unless a route does."""
    routes = with_all_options().resources("AWS::ApiGatewayV2::Route").values()
    assert sorted(route["RouteKey"] for route in routes) == [
        "DELETE /api/v1/{proxy+}",
        "GET /api/v1/{proxy+}",
        "POST /api/v1/{proxy+}",
        "POST /v1/logs",
        "POST /v1/traces",
    ]


def test_the_function_redacts_where_that_is_wanted() -> None:
    wanted = [
        synthesised.resources("AWS::Lambda::Function")["Api/Function"]["Environment"]["Variables"]
        for synthesised in (synthesise("prod"), with_all_options())
    ]
    assert [variables.get("RUNTALLY_REDACT") for variables in wanted] == [None, "rules"]


def test_requests_reach_the_function_in_format_2(assembly: Assembly) -> None:
    assert only(assembly, "Api")["ProtocolType"] == "HTTP"
    (target,) = {
        str(route["Target"]) for route in assembly.resources("AWS::ApiGatewayV2::Route").values()
    }
    assert "integrations/" in target
    integration = only(assembly, "Integration")
    assert integration["IntegrationType"] == "AWS_PROXY"
    assert integration["PayloadFormatVersion"] == "2.0"
    function = integration["IntegrationUri"]["Fn::GetAtt"][0]
    assert assembly.api["Outputs"]["ApiFunction"]["Value"] == {"Ref": function}
    handler = assembly.api["Resources"][function]["Properties"]["Handler"]
    assert handler == "functions.api.handler.handle"


def test_the_function_gives_up_before_the_api_does(assembly: Assembly) -> None:
    function = assembly.resources("AWS::Lambda::Function")["Api/Function"]
    assert function["Timeout"] < 30
    assert "TimeoutInMillis" not in only(assembly, "Integration")  # 30 s, an HTTP API's longest
    assert function["MemorySize"] == 1769  # one vCPU


def test_the_api_is_throttled_as_a_whole(assembly: Assembly) -> None:
    stage = only(assembly, "Stage")
    assert stage["StageName"] == "$default"
    assert stage["AutoDeploy"] is True
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": 100,
        "ThrottlingBurstLimit": 200,
    }
    assert "RouteSettings" not in stage


def test_a_log_of_requests_shows_no_header_and_no_query_string(assembly: Assembly) -> None:
    settings = only(assembly, "Stage")["AccessLogSettings"]
    assert settings["DestinationArn"] == {"Fn::GetAtt": ["AccessLogs8B620ECA", "Arn"]}
    fields = set(json.loads(settings["Format"]).values())
    # Named one by one: whatever is not known to be free of keys does not belong here.
    assert fields == {
        "$context.requestId",
        "$context.requestTime",
        "$context.identity.sourceIp",
        "$context.httpMethod",
        "$context.path",
        "$context.status",
        "$context.responseLength",
        "$context.responseLatency",
        "$context.integrationErrorMessage",
    }


@pytest.mark.parametrize("stage", STAGES)
def test_no_other_origin_s_page_may_read_it(stage: str) -> None:
    assert "CorsConfiguration" not in only(synthesise(stage), "Api")


def test_pages_of_named_origins_may() -> None:
    assert only(with_all_options(), "Api")["CorsConfiguration"] == {
        "AllowOrigins": ["https://runs.example.com"],
        "AllowHeaders": ["authorization", "content-type"],
        "AllowMethods": ["GET", "POST", "DELETE"],
    }


def test_the_url_in_the_outputs_is_the_one_of_the_api(assembly: Assembly) -> None:
    """Without a path or a slash behind it."""
    outputs: dict[str, Any] = assembly.api["Outputs"]
    api = outputs["ApiId"]["Value"]["Ref"]
    assert outputs["ApiUrl"]["Value"] == {"Fn::GetAtt": [api, "ApiEndpoint"]}


@pytest.mark.parametrize("origin", ["*", "https://*", "https://*.example.com"])
def test_an_origin_with_a_wildcard_is_refused(origin: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"no web origin: '{origin}'")):
        replace(DEV, cors_origins=("https://runs.example.com", origin))


@pytest.mark.parametrize("name", ["", "Research", "1st", "-a", "a_b", "a/b", "é", "a\n", "a" * 33])
def test_a_name_that_no_service_entry_may_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a service entry"):
        replace(DEV, service_entries=("research", name))


@pytest.mark.parametrize("name", ["a", "research", "web-search-2", "a" * 32])
def test_others_are_taken(name: str) -> None:
    assert replace(DEV, service_entries=(name,)).service_entries == (name,)


def test_what_the_worker_s_library_and_the_stacks_both_know_is_the_same() -> None:
    """The CDK app imports nothing of the library, nor of the functions' use cases."""
    assert JOB_VISIBILITY.to_seconds() == lease.VISIBILITY_S
    longest = msgspec.json.schema(InvocationWanted)["$defs"]["InvocationWanted"]["properties"]
    assert JOB_RETENTION.to_seconds() > longest["deadline_s"]["maximum"]


@pytest.mark.parametrize(
    "name", ["a", "research", "a-1", "x" * 32, "", "A", "1a", "a_b", "x" * 33, "a\n"]
)
def test_a_stage_takes_the_names_that_a_job_may_have(name: str) -> None:
    def accepted(check: Callable[[], object]) -> bool:
        try:
            check()
        except ValueError:
            return False
        return True

    in_stage = accepted(lambda: replace(DEV, service_entries=(name,)))
    assert in_stage == accepted(lambda: msgspec.convert(name, wire.ServiceEntryName))
