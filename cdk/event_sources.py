"""How events reach the functions: one event source mapping each, nothing left to AWS's defaults.

The defaults delete a batch of which a part failed, and retry a poisoned stream batch until its data
is gone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import jsii
from aws_cdk import Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from cdk.function import Function
from functions.core import keys

_ENDED: Final = ("succeeded", "failed", "cancelled")

STREAM_FILTERS: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {keys.SORT: {"S": [{"prefix": keys.STEP_PREFIX}]}}},
    },
    {
        "eventName": ["INSERT", "MODIFY"],
        "dynamodb": {"NewImage": {keys.SORT: {"S": [keys.RUN]}, "status": {"S": list(_ENDED)}}},
    },
)
"""New steps, and runs with an end. What summarize writes never passes, or it would feed itself."""


ENDED_RUNS: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "eventName": ["INSERT", "MODIFY"],
        "dynamodb": {"NewImage": {keys.SORT: {"S": [keys.SUMMARY]}}},
    },
    STREAM_FILTERS[1],
)
"""What of an ended run is new: its summary, or its own start or end."""


def deliver_messages(
    queue: sqs.Queue,
    to: Function,
    name: str = "Messages",
    batch_size: int = 10,
    max_concurrency: int | None = None,
) -> None:
    """Small batches at once: a worker's messages are already packed. At most `max_concurrency` of
    them at a time: others need the account's concurrency, too."""
    to.allow(
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        on=queue.queue_arn,
    )
    to.function.add_event_source_mapping(
        name,
        event_source_arn=queue.queue_arn,
        batch_size=batch_size,
        max_concurrency=max_concurrency,
        report_batch_item_failures=True,
    )


def deliver_stream(table: dynamodb.TableV2, to: Function, failed_batches: s3.Bucket) -> None:
    """In order per partition key, from the oldest record on, past what cannot be processed.

    After ten retries, or twelve of the stream's twenty-four hours, the records of a failed batch
    are kept in `failed_batches`.
    """
    to.allow_objects(failed_batches, "", "s3:PutObject")
    to.allow("s3:ListBucket", on=failed_batches.bucket_arn)  # Lambda asks for it with a destination
    _map_stream(
        table,
        to,
        batch_size=1000,
        window=Duration.seconds(1),
        patterns=STREAM_FILTERS,
        given_up_to=failed_batches.bucket_arn,
    )


def deliver_ended_runs(table: dynamodb.TableV2, to: Function, given_up: sqs.Queue) -> None:
    """As a second reader of the stream, of the two that it takes; many at once, since what comes
    together about a run is worked on once; one batch of a shard at a time, or a run's end and its
    summary would be worked on apart. Of a failed batch, `given_up` gets the place in the stream,
    past which it goes on."""
    to.allow("sqs:SendMessage", on=given_up.queue_arn)
    _map_stream(
        table,
        to,
        batch_size=100,
        window=Duration.seconds(30),
        patterns=ENDED_RUNS,
        given_up_to=given_up.queue_arn,
    )


def _map_stream(  # noqa: PLR0913 - each by its name
    table: dynamodb.TableV2,
    to: Function,
    *,
    batch_size: int,
    window: Duration,
    patterns: Iterable[Mapping[str, object]],
    given_up_to: str,
) -> None:
    to.function.add_event_source_mapping(
        "Stream",
        event_source_arn=_readable_stream(table, to),
        starting_position=lambda_.StartingPosition.TRIM_HORIZON,
        batch_size=batch_size,
        max_batching_window=window,
        # More keep order per item only; the watermarks on TOTALS stand on order per partition key.
        parallelization_factor=1,
        bisect_batch_on_error=True,
        retry_attempts=10,
        max_record_age=Duration.hours(12),
        report_batch_item_failures=True,
        filters=[lambda_.FilterCriteria.filter(dict(pattern)) for pattern in patterns],
        on_failure=_Destination(given_up_to),
    )


def _readable_stream(table: dynamodb.TableV2, to: Function) -> str:
    stream_arn = table.table_stream_arn
    if stream_arn is None:
        raise ValueError("the table has no stream")
    to.allow(
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
        on=stream_arn,
    )
    return stream_arn


@jsii.implements(lambda_.IEventSourceDlq)
class _Destination:
    """CDK's own also grant reading, and for S3 overwriting and deleting the whole bucket."""

    def __init__(self, arn: str) -> None:
        self._arn = arn

    def bind(
        self, _target: lambda_.IEventSourceMapping, _handler: lambda_.IFunction
    ) -> lambda_.DlqDestinationConfig:
        return lambda_.DlqDestinationConfig(destination=self._arn)
