"""The page's stack: who reads the files, what goes to the API, and with which headers."""

import json

import pytest

from cdk.page import HEADERS
from tests.infra.assembly import (
    CERTIFICATE,
    Assembly,
    Properties,
    Template,
    resources_of,
    synthesise,
    with_all_options,
)

# AWS's own policies: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/
CACHING_OPTIMIZED = "658327ea-f89d-4fab-a63d-7e88639e58f6"
CACHING_DISABLED = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
ALL_VIEWER_EXCEPT_HOST_HEADER = "b689b0a8-53d0-40ab-baf2-68738e2966ac"

A_YEAR_S = 365 * 24 * 3600


@pytest.fixture
def web(aws_assembly: Assembly) -> Template:
    assert aws_assembly.web is not None
    return aws_assembly.web


def only(template: Template, kind: str) -> Properties:
    found: Properties
    (found,) = resources_of(template, kind).values()
    return found


def reference_to(template: Template, kind: str) -> dict[str, str]:
    (logical_id,) = (each for each, found in template["Resources"].items() if found["Type"] == kind)
    return {"Ref": logical_id}


def distribution(template: Template) -> Properties:
    config: Properties = only(template, "AWS::CloudFront::Distribution")["DistributionConfig"]
    return config


def api_behaviors(template: Template) -> dict[str, Properties]:
    return {each["PathPattern"]: each for each in distribution(template)["CacheBehaviors"]}


def origin_of(template: Template, behavior: Properties) -> Properties:
    found: Properties
    (found,) = (
        each
        for each in distribution(template)["Origins"]
        if each["Id"] == behavior["TargetOriginId"]
    )
    return found


def deployments(template: Template) -> dict[str, Properties]:
    """What is brought into the bucket, by the construct's name."""
    found = resources_of(template, "Custom::CDKBucketDeployment")
    return {path.split("/")[1]: each for path, each in found.items()}


def test_the_local_stage_has_none() -> None:
    local = synthesise("local")
    assert local.web is None
    assert {file.name for file in local.folder.glob("*.template.json")} == {
        f"runtally-local-{stack}.template.json" for stack in ("data", "pipeline", "api")
    }


def test_the_files_are_read_by_this_distribution_alone(web: Template) -> None:
    policy = only(web, "AWS::S3::BucketPolicy")
    (allowed,) = (
        each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"
    )
    arn = ["arn:", {"Ref": "AWS::Partition"}, ":cloudfront::", {"Ref": "AWS::AccountId"}]
    this_one = [*arn, ":distribution/", reference_to(web, "AWS::CloudFront::Distribution")]
    bucket_arn = {"Fn::GetAtt": [reference_to(web, "AWS::S3::Bucket")["Ref"], "Arn"]}
    assert allowed == {
        "Effect": "Allow",
        "Principal": {"Service": "cloudfront.amazonaws.com"},
        "Action": "s3:GetObject",
        "Resource": {"Fn::Join": ["", [bucket_arn, "/*"]]},
        "Condition": {"StringEquals": {"AWS:SourceArn": {"Fn::Join": ["", this_one]}}},
    }


def test_cloudfront_signs_what_it_asks_the_bucket_for(web: Template) -> None:
    origin = origin_of(web, distribution(web)["DefaultCacheBehavior"])
    assert origin["S3OriginConfig"] == {"OriginAccessIdentity": ""}
    access_id = reference_to(web, "AWS::CloudFront::OriginAccessControl")["Ref"]
    assert origin["OriginAccessControlId"] == {"Fn::GetAtt": [access_id, "Id"]}
    access = only(web, "AWS::CloudFront::OriginAccessControl")["OriginAccessControlConfig"]
    assert access["SigningBehavior"] == "always"
    assert access["SigningProtocol"] == "sigv4"


def test_names_that_an_account_has_once_hold_stage_and_region(aws_assembly: Assembly) -> None:
    assert aws_assembly.web is not None
    stage = aws_assembly.settings.stage
    expected = {"Fn::Join": ["", [f"runtally-{stage}-page-", {"Ref": "AWS::Region"}]]}
    access = only(aws_assembly.web, "AWS::CloudFront::OriginAccessControl")
    assert access["OriginAccessControlConfig"]["Name"] == expected
    headers = only(aws_assembly.web, "AWS::CloudFront::ResponseHeadersPolicy")
    assert headers["ResponseHeadersPolicyConfig"]["Name"] == expected


def test_the_page_is_cached_compressed_and_sent_by_https(web: Template) -> None:
    config = distribution(web)
    assert config["DefaultRootObject"] == "index.html"
    assert config["HttpVersion"] == "http2and3"
    assert config["PriceClass"] == "PriceClass_100"
    behavior = config["DefaultCacheBehavior"]
    assert behavior["ViewerProtocolPolicy"] == "redirect-to-https"
    assert behavior["CachePolicyId"] == CACHING_OPTIMIZED
    assert behavior["Compress"] is True
    assert not {"AllowedMethods", "OriginRequestPolicyId"} & set(behavior)  # GET, HEAD; no header


def test_the_api_gets_each_request_as_it_was_sent(web: Template) -> None:
    behaviors = api_behaviors(web)
    assert set(behaviors) == {"/api/*", "/v1/*"}
    for behavior in behaviors.values():
        assert behavior["ViewerProtocolPolicy"] == "https-only"
        assert behavior["CachePolicyId"] == CACHING_DISABLED
        assert behavior["OriginRequestPolicyId"] == ALL_VIEWER_EXCEPT_HOST_HEADER
        assert {"GET", "HEAD", "OPTIONS", "POST", "DELETE"} < set(behavior["AllowedMethods"])
        assert behavior["Compress"] is False
        assert not {"FunctionAssociations", "LambdaFunctionAssociations"} & set(behavior)


def test_the_api_is_this_stage_s_and_reached_by_https(aws_assembly: Assembly) -> None:
    assert aws_assembly.web is not None
    exports = {
        output["Export"]["Name"]: output["Value"]
        for output in aws_assembly.api["Outputs"].values()
        if "Export" in output
    }
    for behavior in api_behaviors(aws_assembly.web).values():
        origin = origin_of(aws_assembly.web, behavior)
        assert origin["CustomOriginConfig"] == {
            "OriginProtocolPolicy": "https-only",
            "OriginSSLProtocols": ["TLSv1.2"],
        }
        assert "OriginPath" not in origin
        part, split = origin["DomainName"]["Fn::Select"]
        separator, url = split["Fn::Split"]
        assert (part, separator) == (2, "/")  # https: / (nothing) / domain
        assert exports[url["Fn::ImportValue"]] == aws_assembly.api["Outputs"]["ApiUrl"]["Value"]


def test_no_answer_of_the_api_is_replaced_by_a_page(web: Template) -> None:
    assert "CustomErrorResponses" not in distribution(web)


def test_all_answers_carry_the_headers_of_the_one_file(web: Template) -> None:
    policy_reference = reference_to(web, "AWS::CloudFront::ResponseHeadersPolicy")
    for behavior in (distribution(web)["DefaultCacheBehavior"], *api_behaviors(web).values()):
        assert behavior["ResponseHeadersPolicyId"] == policy_reference
    policy = only(web, "AWS::CloudFront::ResponseHeadersPolicy")["ResponseHeadersPolicyConfig"]
    security = policy["SecurityHeadersConfig"]
    transport = security.pop("StrictTransportSecurity")
    assert transport["AccessControlMaxAgeSec"] == A_YEAR_S
    assert not transport.get("IncludeSubdomains")  # others' are not ours to decide on
    sent = {
        "Content-Security-Policy": security["ContentSecurityPolicy"]["ContentSecurityPolicy"],
        "Referrer-Policy": security["ReferrerPolicy"]["ReferrerPolicy"],
        "X-Content-Type-Options": "nosniff",
    }
    custom = policy["CustomHeadersConfig"]["Items"]
    assert sent | {each["Header"]: each["Value"] for each in custom} == json.loads(
        HEADERS.read_text()
    )
    overriding = [*security.values(), transport, *custom]
    assert len(overriding) == len(sent) + 1 + len(custom)
    assert all(each["Override"] is True for each in overriding)


def test_nothing_but_the_own_origin_is_let_in_or_called() -> None:
    headers = json.loads(HEADERS.read_text())
    policy = dict(
        directive.split(" ", 1) for directive in headers["Content-Security-Policy"].split("; ")
    )
    assert policy.pop("img-src") == "'self' data:"
    for directive in ("script-src", "style-src", "connect-src", "font-src"):
        assert policy.pop(directive) == "'self'"
    assert set(policy) == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert set(policy.values()) == {"'none'"}
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Strict-Transport-Security" not in headers  # by plain HTTP on the loopback interface


def test_only_files_that_never_change_are_kept_by_browsers(web: Template) -> None:
    found = deployments(web)
    hashed, others = found["Hashed"], found["Others"]
    assert set(found) == {"Hashed", "Others"}
    assert (hashed["Exclude"], hashed["Include"]) == (["*"], ["assets/*"])
    assert hashed["SystemMetadata"] == {"cache-control": "public, max-age=31536000, immutable"}
    assert others["Exclude"] == ["assets/*"]
    assert "Include" not in others
    assert others["SystemMetadata"] == {"cache-control": "no-cache"}


def test_a_new_page_comes_after_its_assets_and_removes_no_old_ones(web: Template) -> None:
    logical_ids = {
        found["Metadata"]["aws:cdk:path"].split("/")[2]: each
        for each, found in web["Resources"].items()
        if found["Type"] == "Custom::CDKBucketDeployment"
    }
    others = web["Resources"][logical_ids["Others"]]
    assert logical_ids["Hashed"] in others["DependsOn"]
    for deployment in deployments(web).values():
        assert deployment["Prune"] is False
        assert "RetainOnDelete" not in deployment  # which is to retain
    assert others["Properties"]["DistributionPaths"] == ["/index.html"]
    assert "DistributionPaths" not in deployments(web)["Hashed"]
    assert "ExpirationInDays" not in json.dumps(only(web, "AWS::S3::Bucket"))


def test_what_deploys_the_page_writes_to_a_log_that_forgets(web: Template) -> None:
    function = only(web, "AWS::Lambda::Function")
    group = web["Resources"][function["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Type"] == "AWS::Logs::LogGroup"
    assert 7 <= group["Properties"]["RetentionInDays"] <= 90


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_url_is_cloudfront_s(stage: str) -> None:
    web = synthesise(stage).web
    assert web is not None
    separator, (scheme, domain) = web["Outputs"]["PageUrl"]["Value"]["Fn::Join"]
    assert (separator, scheme, domain["Fn::GetAtt"][1]) == ("", "https://", "DomainName")
    assert not {"Aliases", "ViewerCertificate"} & set(distribution(web))


def test_a_domain_of_its_own_comes_with_its_certificate() -> None:
    web = with_all_options().web
    assert web is not None
    assert web["Outputs"]["PageUrl"]["Value"] == "https://runs.example.com"
    assert distribution(web)["Aliases"] == ["runs.example.com"]
    assert distribution(web)["ViewerCertificate"] == {
        "AcmCertificateArn": CERTIFICATE,
        "MinimumProtocolVersion": "TLSv1.2_2021",
        "SslSupportMethod": "sni-only",
    }
