"""The one place where AWS clients are made, with nothing left to the SDK's changing defaults."""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

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


ANSWERING: Final = CONFIG.merge(
    Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=1, read_timeout=3)
)
"""For functions that somebody waits for: API Gateway gives up after 30 seconds, whatever hangs."""

_LINKS: Final = Config(
    # The old way of signing knows no signed headers. Links are signed for the bucket's own region:
    # the global host would redirect them, and in the newer regions never work.
    signature_version="s3v4",
    s3={"addressing_style": "virtual"},
)

_making: Final = Lock()


def _once[**P, T](make: Callable[P, T]) -> Callable[P, T]:
    """One client a service, whichever thread asks first: boto3's default session, with which they
    are made, is not safe to use from several at once (F16), and `cache` alone would make two."""
    made = cache(make)

    def client(*args: P.args, **kwargs: P.kwargs) -> T:
        with _making:
            return made(*args, **kwargs)  # type: ignore[arg-type] # Config hashes as itself

    return client


@_once
def dynamodb(config: Config = CONFIG) -> "DynamoDBClient":
    return boto3.client("dynamodb", config=config)


@_once
def s3(config: Config = CONFIG) -> "S3Client":
    return boto3.client("s3", config=config.merge(_LINKS))


@_once
def events(config: Config = CONFIG) -> Any:
    return boto3.client("events", config=config)


@_once
def sqs(config: Config = CONFIG) -> "SQSClient":
    return boto3.client("sqs", config=config)
