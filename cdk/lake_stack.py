"""Ended runs as Parquet, for years: a bucket of their own, what fills it, and Athena."""

from pathlib import Path
from typing import Final

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.acknowledged import acknowledge
from cdk.bucket import private_bucket
from cdk.data_stack import DataStack
from cdk.event_sources import deliver_ended_runs
from cdk.function import Entry, Function
from cdk.lake_catalog import LakeCatalog
from cdk.queue import DEAD_LETTER_RETENTION
from cdk.settings import LakeSettings, StageSettings
from functions.adapters import settings as variables
from functions.core import keys

LAKE_TIMEOUT: Final = Duration.minutes(5)
"""Half of it is there for the last run that is begun; see the handler."""
LAKE_MEMORY_MB: Final = 1769
"""One whole vCPU. Of four runs of 100,000 calls at once, steps take 800 MB, and DuckDB 256."""
LAKE_DISK_MB: Final = 2048
"""The calls of such a run, as wide as caps allow, take 310 MB while they are written."""


class LakeStack(Stack):
    """Nothing reads from it but people, and nothing else writes to it: without it all goes on."""

    def __init__(
        self,
        scope: Construct,
        settings: StageSettings,
        lake: LakeSettings,
        data: DataStack,
        code: Path,
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-lake",
            description=f"runtally {settings.stage}: ended runs as Parquet, Athena",
        )
        key = self._add_key(settings) if lake.own_key else None
        self.bucket = self._add_bucket(settings, lake, key)
        function = self._add_function(settings, lake, data, code, key)
        deliver_ended_runs(data.table, function, self._add_dead_letters(settings))
        catalog = LakeCatalog(self, settings, lake, self.bucket)
        outputs = {
            "LakeUrl": f"s3://{self.bucket.bucket_name}/{keys.LAKE_OBJECTS}",
            "LakeFunction": function.name,
            "LakeRetentionDays": str(lake.retention_days),
            **catalog.outputs,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)

    def _add_key(self, settings: StageSettings) -> kms.Key:
        return kms.Key(
            self,
            "Key",
            description=f"runtally {settings.stage}: the lake",
            enable_key_rotation=True,
            removal_policy=settings.removal_policy,
        )

    def _add_bucket(
        self, settings: StageSettings, lake: LakeSettings, key: kms.Key | None
    ) -> s3.Bucket:
        tiers = {
            s3.StorageClass.INFREQUENT_ACCESS: lake.infrequent_after_days,
            s3.StorageClass.GLACIER_INSTANT_RETRIEVAL: lake.archive_after_days,
        }
        locked = lake.object_lock_days
        return private_bucket(
            self,
            "LakeBucket",
            settings,
            Duration.days(lake.retention_days),
            versioned=True,
            key=key,
            lockable=True,  # whether a bucket can be is settled when it is made
            locked_for=Duration.days(locked) if locked else None,
            tiers=[
                s3.Transition(storage_class=tier, transition_after=Duration.days(days))
                for tier, days in tiers.items()
                if days is not None
            ],
        )

    def _add_function(
        self,
        settings: StageSettings,
        lake: LakeSettings,
        data: DataStack,
        code: Path,
        key: kms.Key | None,
    ) -> Function:
        function = Function(
            self,
            "Lake",
            settings,
            lambda_.Code.from_asset(str(code)),
            Entry(
                handler="functions.lake.handler.handle",
                timeout=LAKE_TIMEOUT,
                memory_mb=LAKE_MEMORY_MB,
                disk_mb=LAKE_DISK_MB,
                environment={
                    variables.TABLE: data.table.table_name,
                    variables.LAKE_BUCKET: self.bucket.bucket_name,
                    variables.RETENTION_DAYS: str(lake.retention_days),
                },
            ),
        )
        function.allow_items(
            data.table, keys.RUN_PREFIX, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"
        )
        # It looks whether a file is there already, and hides what lies under another day; versions
        # are erase's alone.
        function.allow_objects(
            self.bucket, keys.LAKE_OBJECTS, "s3:GetObject", "s3:PutObject", "s3:DeleteObject"
        )
        if key:
            function.allow("kms:GenerateDataKey", on=key.key_arn)
        return function

    def _add_dead_letters(self, settings: StageSettings) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "LakeDeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=settings.tls_only,
            retention_period=DEAD_LETTER_RETENTION,
            removal_policy=settings.removal_policy,
        )
        acknowledge(queue, "SQS3", "It is where dead letters end, those of a stream.")
        return queue
