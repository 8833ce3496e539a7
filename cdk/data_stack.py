"""What must outlive every deployment: the table and the bucket of the runs."""

from typing import Final

from aws_cdk import CfnOutput, Duration, IStackSynthesizer, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.bucket import private_bucket
from cdk.queue import DEAD_LETTER_RETENTION, EVENT_RETENTION
from cdk.settings import StageSettings
from functions.core import keys

OBJECT_MARGIN_DAYS: Final = 7
"""Objects outlive their items, never the reverse: TTL may delete an item days after it expired."""


class DataStack(Stack):
    """The table and the bucket, kept when the stack is deleted unless the stage says otherwise."""

    def __init__(
        self, scope: Construct, settings: StageSettings, synthesizer: IStackSynthesizer | None
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-data",
            description=f"runtally {settings.stage}: table and bucket of the runs",
            synthesizer=synthesizer,
        )
        self.table = _table(self, settings)
        self.bucket = private_bucket(
            self,
            "Bucket",
            settings,
            expire_after=Duration.days(settings.retention_days + OBJECT_MARGIN_DAYS),
            versioned=True,
        )
        _expire_dead_letters(self.bucket)
        CfnOutput(self, "TableName", value=self.table.table_name)
        CfnOutput(self, "BucketName", value=self.bucket.bucket_name)


def _expire_dead_letters(bucket: s3.Bucket) -> None:
    """No run and no tenant finds them, so their time is short: a letter's, after which it is moved
    back, waits to be delivered, is delivered in vain and a letter again; and a day."""
    days = 2 * DEAD_LETTER_RETENTION.to_days() + EVENT_RETENTION.to_days() + 1
    bucket.add_lifecycle_rule(
        id="expire-dead-letters",
        prefix=keys.DEAD_LETTERS,
        expiration=Duration.days(days),
        noncurrent_version_expiration=Duration.days(1),
    )


def _table(scope: Construct, settings: StageSettings) -> dynamodb.TableV2:
    return dynamodb.TableV2(
        scope,
        "Table",
        partition_key=_string(keys.PARTITION),
        sort_key=_string(keys.SORT),
        billing=dynamodb.Billing.on_demand(),
        dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
        time_to_live_attribute=keys.EXPIRES,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
        deletion_protection=settings.keep_data,
        removal_policy=settings.removal_policy,
        global_secondary_indexes=[
            # Narrow, because an index is written, and billed, whenever what it projects changes.
            dynamodb.GlobalSecondaryIndexPropsV2(
                index_name=keys.BY_TENANT,
                partition_key=_string(keys.BY_TENANT_PARTITION),
                sort_key=_string(keys.BY_TENANT_SORT),
                projection_type=dynamodb.ProjectionType.INCLUDE,
                non_key_attributes=["status", "pipeline"],
            ),
            dynamodb.GlobalSecondaryIndexPropsV2(
                index_name=keys.OPEN_RUNS,
                partition_key=_string(keys.OPEN_RUNS_PARTITION),
                sort_key=_string(keys.OPEN_RUNS_SORT),
                projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            ),
        ],
    )


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
