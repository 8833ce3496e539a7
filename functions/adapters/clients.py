"""The one place where AWS clients are made, with nothing left to the SDK's changing defaults."""

from functools import cache
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

CONCURRENCY: Final = 32
"""Requests under way at once in one function, and so connections kept."""

CONFIG: Final = Config(
    # botocore's default went from 10 attempts to 4 for DynamoDB; back-off is capped at 20 s each.
    retries={"mode": "standard", "total_max_attempts": 6},
    connect_timeout=2,
    read_timeout=10,
    max_pool_connections=CONCURRENCY,
    # Half of botocore's own work a call: it checks again what the types here already say, and
    # builds its User-Agent twice.
    parameter_validation=False,
    user_agent="runtally",
    tcp_keepalive=True,
)


@cache
def dynamodb() -> "DynamoDBClient":
    return boto3.client("dynamodb", config=CONFIG)


@cache
def s3() -> "S3Client":
    return boto3.client("s3", config=CONFIG)


@cache
def sqs() -> "SQSClient":
    return boto3.client("sqs", config=CONFIG)
