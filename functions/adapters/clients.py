"""The one place where AWS clients are made, with nothing left to the SDK's changing defaults."""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

MESSAGES_AT_ONCE: Final = 10
STEPS_AT_ONCE: Final = 32
"""What one function has under way at once: each has a connection, or waits for none."""

CONFIG: Final = Config(
    # botocore's default went from 10 attempts to 4 for DynamoDB; back-off is capped at 20 s each.
    retries={"mode": "standard", "total_max_attempts": 6},
    connect_timeout=2,
    read_timeout=10,
    max_pool_connections=MESSAGES_AT_ONCE + STEPS_AT_ONCE,
    # Half of botocore's own work a call: it checks again what the types here already say, and
    # builds its User-Agent twice.
    parameter_validation=False,
    user_agent="runtally",
    tcp_keepalive=True,
)


_making: Final = Lock()


def _once[T](make: Callable[[], T]) -> Callable[[], T]:
    """One client a service, whichever thread asks first: boto3's default session, with which they
    are made, is not safe to use from several at once (F16), and `cache` alone would make two."""
    made = cache(make)

    def client() -> T:
        with _making:
            return made()

    return client


@_once
def dynamodb() -> "DynamoDBClient":
    return boto3.client("dynamodb", config=CONFIG)


@_once
def s3() -> "S3Client":
    return boto3.client("s3", config=CONFIG)


@_once
def sqs() -> "SQSClient":
    return boto3.client("sqs", config=CONFIG)
