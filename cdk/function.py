"""A Lambda function with a role and a log group of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from aws_cdk import Duration, Size
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.acknowledged import acknowledge, acknowledge_objects
from cdk.settings import StageSettings
from functions.adapters import settings as variables
from functions.core.schema import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Entry:
    """Which code runs, with how much, and what it is told of its surroundings."""

    handler: str
    timeout: Duration
    memory_mb: int
    environment: Mapping[str, str]
    disk_mb: int | None = None
    """Of /tmp; Lambda's own are 512, and cost nothing."""


class Function(Construct):
    """May write to its own log group and nothing else, until `allow` says so."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: StageSettings,
        code: lambda_.Code,
        entry: Entry,
    ) -> None:
        super().__init__(scope, name)
        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=settings.log_retention,
            removal_policy=settings.removal_policy,
        )
        # Not the role that CDK would make: its managed policy allows writing to every log group.
        self._role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(self._role)
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"runtally {settings.stage}: {name.lower()}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=_ARCHITECTURES[settings.architecture],
            code=code,
            handler=entry.handler,
            timeout=entry.timeout,
            memory_size=entry.memory_mb,
            ephemeral_storage_size=Size.mebibytes(entry.disk_mb) if entry.disk_mb else None,
            role=self._role,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            environment={
                "POWERTOOLS_SERVICE_NAME": name.lower(),
                "POWERTOOLS_METRICS_NAMESPACE": settings.metrics_namespace,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                variables.VERSION: version("runtally-stage"),
                variables.SCHEMA_VERSION: str(SCHEMA_VERSION),
                **entry.environment,
            },
        )
        acknowledge(
            self.function,
            "L1",
            "Lambda runs Python 3.13 as long as 3.14, until 2029-06; the tests run on it.",
        )

    @property
    def name(self) -> str:
        return self.function.function_name

    def allow(self, *actions: str, on: str, conditions: Mapping[str, Any] | None = None) -> None:
        """Grant exactly these actions on one resource."""
        self._role.add_to_principal_policy(
            iam.PolicyStatement(actions=list(actions), resources=[on], conditions=conditions)
        )

    def allow_items(self, table: dynamodb.TableV2, prefix: str, *actions: str) -> None:
        """Grant exactly these actions on the items whose partition key starts with a prefix."""
        leading = {"dynamodb:LeadingKeys": [f"{prefix}*"]}
        self.allow(*actions, on=table.table_arn, conditions={"ForAllValues:StringLike": leading})

    def allow_objects(self, bucket: s3.Bucket, prefix: str, *actions: str) -> None:
        """Grant exactly these actions on the objects below a prefix."""
        self.allow(*actions, on=bucket.arn_for_objects(f"{prefix}*"))
        acknowledge_objects(self._role, bucket, prefix)


_ARCHITECTURES: Mapping[str, lambda_.Architecture] = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}
