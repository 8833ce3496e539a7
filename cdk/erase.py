"""What erases deleted runs: its queue, its function, and what that may do."""

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.data_stack import DataStack
from cdk.event_sources import deliver_messages
from cdk.function import Entry, Function
from cdk.lake_stack import LakeStack
from cdk.queue import Delivery, QueueWithDeadLetters, outlasting
from cdk.settings import StageSettings
from functions.adapters import settings as variables
from functions.core import keys

ERASE_TIMEOUT: Final = Duration.minutes(5)
"""It stops by itself before, and asks itself to go on."""

QUIET: Final = Duration.minutes(10)
"""After which nothing can be written any more by who had not seen the tombstone: longer than any
function may run, so that the last look is the last."""
_RUNS_AT_ONCE: Final = 20
"""A tenant may have thousands, and ingest and api live on the same account's concurrency."""
_QUIET_LOCALLY: Final = Duration.seconds(20)
"""Where runs are small and people wait."""


def quiet_s(settings: StageSettings) -> str:
    """In seconds, as the function and the command line read it."""
    return str((_QUIET_LOCALLY if settings.is_local else QUIET).to_seconds())


def erasures_queue(scope: Construct, settings: StageSettings) -> QueueWithDeadLetters:
    return QueueWithDeadLetters(scope, "Erasures", settings, Delivery(outlasting(ERASE_TIMEOUT)))


def add_erase(  # noqa: PLR0913 - each by its name
    scope: Construct,
    settings: StageSettings,
    code: lambda_.Code,
    data: DataStack,
    erasures: sqs.Queue,
    *,
    lake: LakeStack | None,
) -> Function:
    """The only function that may delete: items of runs, and versions of their objects."""
    erase = Function(
        scope,
        "Erase",
        settings,
        code,
        Entry(
            handler="functions.erase.handler.handle",
            timeout=ERASE_TIMEOUT,
            memory_mb=512,
            environment={
                variables.TABLE: data.table.table_name,
                variables.BUCKET: data.bucket.bucket_name,
                variables.ERASURE_QUEUE_URL: erasures.queue_url,
                variables.QUIET_S: quiet_s(settings),
                **({variables.LAKE_BUCKET: lake.bucket.bucket_name} if lake else {}),
            },
        ),
    )
    erase.allow_items(
        data.table,
        keys.RUN_PREFIX,
        "dynamodb:GetItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "dynamodb:BatchWriteItem",
    )
    erase.allow_items(data.table, keys.TENANT_PREFIX, "dynamodb:GetItem")
    _allow_erasing(erase, data.bucket, keys.RUN_OBJECTS, keys.INBOX)
    if lake:
        _allow_erasing(erase, lake.bucket, keys.LAKE_OBJECTS)
        # Also where there is no lock now: there may have been one.
        erase.allow_objects(lake.bucket, keys.LAKE_OBJECTS, "s3:GetObjectRetention")
    erase.allow("sqs:SendMessage", on=erasures.queue_arn)
    deliver_messages(erasures, erase, batch_size=1, max_concurrency=_RUNS_AT_ONCE)
    return erase


def _allow_erasing(erase: Function, bucket: s3.Bucket, *prefixes: str) -> None:
    for prefix in prefixes:
        # DeleteObjects asks for both, says its reference, also when every version is named.
        erase.allow_objects(bucket, prefix, "s3:DeleteObject", "s3:DeleteObjectVersion")
    below = {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}}
    erase.allow("s3:ListBucketVersions", on=bucket.bucket_arn, conditions=below)
