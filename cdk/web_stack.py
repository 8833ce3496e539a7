"""The Pipeline page: its files in a private bucket, behind CloudFront, which has the API, too."""

import json
from pathlib import Path
from typing import Final

from aws_cdk import CfnOutput, Duration, Fn, IStackSynthesizer, Stack
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.acknowledged import acknowledge
from cdk.api_stack import ApiStack
from cdk.bucket import private_bucket
from cdk.page import HEADERS
from cdk.page_files import PageFiles
from cdk.settings import PageDomain, StageSettings

API_PATHS: Final = ("/api/*", "/v1/*")

_HTTPS_ONLY: Final = Duration.days(365)


class WebStack(Stack):
    """One address for page and API, so that the page needs no other origin's permission.

    The API stays reachable at its own address, too: workers use that one.
    """

    def __init__(
        self,
        scope: Construct,
        settings: StageSettings,
        synthesizer: IStackSynthesizer | None,
        api: ApiStack,
        page: Path,
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-web",
            description=f"runtally {settings.stage}: the Pipeline page",
            synthesizer=synthesizer,
        )
        bucket = private_bucket(self, "Page", settings, expire_after=None, versioned=False)
        distribution = self._add_distribution(settings, bucket, api)
        PageFiles(self, settings, page, bucket, distribution)
        domain = settings.page_domain
        name = domain.name if domain else distribution.distribution_domain_name
        CfnOutput(self, "PageUrl", value=f"https://{name}")

    def _add_distribution(
        self, settings: StageSettings, bucket: s3.Bucket, api: ApiStack
    ) -> cloudfront.Distribution:
        # Names of policies and access controls are an account's, over all regions.
        name = f"{settings.prefix}-page-{self.region}"
        access = cloudfront.S3OriginAccessControl(self, "Access", origin_access_control_name=name)
        headers = _headers(self, name)
        domain = settings.page_domain
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=settings.prefix,
            # No error page for what is missing: it would replace the API's answers of the same
            # status, and the page's own addresses are below `#`.
            default_root_object="index.html",
            default_behavior=cloudfront.BehaviorOptions(
                origin=origins.S3BucketOrigin.with_origin_access_control(
                    bucket, origin_access_control=access
                ),
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
                cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
                compress=True,
                response_headers_policy=headers,
            ),
            additional_behaviors=dict.fromkeys(API_PATHS, _api_behavior(api, headers)),
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
            domain_names=[domain.name] if domain else None,
            certificate=_certificate(self, domain),
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
        )
        _acknowledge_findings(distribution)
        return distribution


def _certificate(scope: Construct, domain: PageDomain | None) -> acm.ICertificate | None:
    if domain is None:
        return None
    return acm.Certificate.from_certificate_arn(scope, "Certificate", domain.certificate_arn)


def _api_behavior(
    api: ApiStack, headers: cloudfront.ResponseHeadersPolicy
) -> cloudfront.BehaviorOptions:
    return cloudfront.BehaviorOptions(
        origin=origins.HttpOrigin(
            Fn.select(2, Fn.split("/", api.url)),
            protocol_policy=cloudfront.OriginProtocolPolicy.HTTPS_ONLY,
        ),
        # No redirect: a client that sent its key in the clear shall notice.
        viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
        allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
        cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
        # Authorization is among them. API Gateway knows its APIs by Host, and not by CloudFront's.
        origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
        compress=False,  # the API does so itself
        response_headers_policy=headers,
    )


def _headers(scope: Construct, name: str) -> cloudfront.ResponseHeadersPolicy:
    """What every server of the page sends, and that its address is to be used by HTTPS only.

    CloudFront takes some of them by fields of their own, and only there.
    """
    headers: dict[str, str] = json.loads(HEADERS.read_text())
    policy = headers.pop("Content-Security-Policy")
    referrer = headers.pop("Referrer-Policy").replace("-", "_").upper()
    del headers["X-Content-Type-Options"]  # has only one value
    return cloudfront.ResponseHeadersPolicy(
        scope,
        "Headers",
        response_headers_policy_name=name,
        security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
            content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                content_security_policy=policy, override=True
            ),
            content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
            referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                referrer_policy=cloudfront.HeadersReferrerPolicy[referrer], override=True
            ),
            strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                access_control_max_age=_HTTPS_ONLY, override=True
            ),
        ),
        custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
            custom_headers=[
                cloudfront.ResponseCustomHeader(header=header, value=value, override=True)
                for header, value in headers.items()
            ]
        ),
    )


def _acknowledge_findings(distribution: cloudfront.Distribution) -> None:
    for rule, reason in {
        "CFR1": "A team may work in any country, and without a key there is nothing to see.",
        "CFR2": "A web ACL costs a monthly fee, idle or not: whoever wants one adds it. The page "
        "is public text; the API checks its keys and is throttled.",
        "CFR3": "The files are the same for everybody; the API logs each of its requests itself.",
        "CFR4": "CloudFront's own domain comes with its own certificate, for which it alone "
        "chooses the TLS versions; a page_domain in the settings brings TLS 1.2 as the least.",
    }.items():
        acknowledge(distribution, rule, reason)
