"""The HTTP API: one route to one function, and the service entries that it starts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aws_cdk import CfnOutput, Duration, IStackSynthesizer, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from cdk.acknowledged import acknowledge
from cdk.bundle import Bundle
from cdk.function import Entry, Function
from cdk.pipeline_stack import PipelineStack
from cdk.service_entries import ServiceEntries
from cdk.settings import StageSettings
from functions.adapters import settings as variables
from functions.core import keys

API_TIMEOUT: Final = Duration.seconds(29)
"""HTTP APIs give up after 30: a function that is stopped before says so in its own log."""

API_MEMORY_MB: Final = 1769
"""One whole vCPU: reading a large run is bound by the CPU, and more than one would idle."""

_ROUTE: Final = "/api/v1/{proxy+}"
_OTLP_ROUTES: Final = ("/v1/traces", "/v1/logs")
_METHODS: Final = ("GET", "POST", "DELETE")

_ACCESS_LOG: Final = {
    "request_id": "$context.requestId",
    "time": "$context.requestTime",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "response_bytes": "$context.responseLength",
    "response_ms": "$context.responseLatency",
    "integration_error": "$context.integrationErrorMessage",
}
"""One JSON object a request; no header and no query string, so that no API key gets into a log."""


class ApiStack(Stack):
    """What answers requests, and what they may start."""

    def __init__(
        self,
        scope: Construct,
        settings: StageSettings,
        synthesizer: IStackSynthesizer | None,
        pipeline: PipelineStack,
        code: Mapping[Bundle, Path],
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-api",
            description=f"runtally {settings.stage}: HTTP API, service entries",
            synthesizer=synthesizer,
        )
        self._settings = settings
        self._code = lambda_.Code.from_asset(str(code[settings.api_bundle]))
        self._table = pipeline.data.table
        self._bucket = pipeline.data.bucket
        self._service_entries = ServiceEntries(
            self, settings, pipeline.data, lambda_.Code.from_asset(str(code["functions"]))
        )
        function = self._add_function(pipeline)
        api = self._add_http_api(function)
        self._add_stage(api)
        self.http_api = api
        self.url = api.api_endpoint
        for name, value in {
            "ApiId": api.api_id,
            "ApiUrl": api.api_endpoint,
            "ApiFunction": function.name,
        }.items():
            CfnOutput(self, name, value=value)

    def _add_function(self, pipeline: PipelineStack) -> Function:
        api = Function(
            self,
            "Api",
            self._settings,
            self._code,
            Entry(
                handler="functions.api.handler.handle",
                timeout=API_TIMEOUT,
                memory_mb=API_MEMORY_MB,
                environment={
                    variables.TABLE: self._table.table_name,
                    variables.BUCKET: self._bucket.bucket_name,
                    variables.EVENT_QUEUE_URL: pipeline.event_queue.queue_url,
                    variables.RETENTION_DAYS: str(self._settings.retention_days),
                    variables.SERVICE_ENTRIES: self._service_entries.queue_urls,
                    **({variables.REDACT: "rules"} if self._settings.redaction else {}),
                    variables.ERASURE_QUEUE_URL: pipeline.erasure_queue.queue_url,
                },
            ),
        )
        self._grant_reading(api)
        api.allow_items(
            self._table, keys.INVOCATION_PREFIX, "dynamodb:PutItem", "dynamodb:UpdateItem"
        )
        # A tombstone in the place of a run's own item, and nothing else.
        api.allow_items(self._table, keys.RUN_PREFIX, "dynamodb:UpdateItem")
        for queue in (pipeline.event_queue, pipeline.erasure_queue):
            api.allow("sqs:SendMessage", on=queue.queue_arn)
        # Spans too large for the queue, on their way to it.
        api.allow_objects(self._bucket, keys.INBOX, "s3:PutObject")
        self._service_entries.allow_sending(api)
        return api

    def _grant_reading(self, api: Function) -> None:
        api.allow(
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:Query",
            on=self._table.table_arn,
        )
        api.allow("dynamodb:Query", on=f"{self._table.table_arn}/index/{keys.BY_TENANT}")
        for prefix in (keys.RUN_OBJECTS, keys.INVOCATION_OBJECTS):
            api.allow_objects(self._bucket, prefix, "s3:GetObject")
        # Without it S3 answers AccessDenied, not NoSuchKey, for an object that is missing.
        api.allow("s3:ListBucket", on=self._bucket.bucket_arn)

    def _add_http_api(self, function: Function) -> apigatewayv2.HttpApi:
        api = apigatewayv2.HttpApi(
            self,
            "HttpApi",
            api_name=self._settings.prefix,
            create_default_stage=False,
            cors_preflight=self._cors(),
        )
        # ANY takes the browsers' OPTIONS requests, too, which bring no API key; where there may be
        # some, API Gateway has to answer them, and it does so when no route does.
        methods = _METHODS if self._settings.cors_origins else ("ANY",)
        integration = HttpLambdaIntegration("Function", function.function)
        api.add_routes(
            path=_ROUTE,
            methods=[apigatewayv2.HttpMethod[method] for method in methods],
            integration=integration,
        )
        for path in _OTLP_ROUTES:
            api.add_routes(
                path=path, methods=[apigatewayv2.HttpMethod.POST], integration=integration
            )
        acknowledge(
            api,
            "APIG4",
            "The function checks the API key of every request itself, with one read.",
        )
        return api

    def _cors(self) -> apigatewayv2.CorsPreflightOptions | None:
        """None: the page comes from the same origin, and needs no permission."""
        if not self._settings.cors_origins:
            return None
        return apigatewayv2.CorsPreflightOptions(
            allow_origins=list(self._settings.cors_origins),
            allow_headers=["authorization", "content-type"],
            allow_methods=[apigatewayv2.CorsHttpMethod[method] for method in _METHODS],
        )

    def _add_stage(self, api: apigatewayv2.HttpApi) -> None:
        """The one stage, which adds nothing to the path."""
        log_group = logs.LogGroup(
            self,
            "AccessLogs",
            retention=self._settings.log_retention,
            removal_policy=self._settings.removal_policy,
        )
        apigatewayv2.CfnStage(
            self,
            "DefaultStage",
            api_id=api.api_id,
            stage_name="$default",
            auto_deploy=True,
            default_route_settings=apigatewayv2.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=self._settings.requests_per_second,
                throttling_burst_limit=self._settings.request_burst,
            ),
            access_log_settings=apigatewayv2.CfnStage.AccessLogSettingsProperty(
                destination_arn=log_group.log_group_arn, format=json.dumps(_ACCESS_LOG)
            ),
        )
