"""What AWS asks for what a stage uses: us-east-1, on demand, in dollars, as of 2026-11.

One table for everything here that speaks of money, before free tiers and taxes.
"""

from decimal import Decimal
from typing import Final

MILLION: Final = 1_000_000

DYNAMODB_WRITE_UNIT: Final = Decimal("0.625") / MILLION
DYNAMODB_READ_UNIT: Final = Decimal("0.125") / MILLION
DYNAMODB_GB_MONTH: Final = Decimal("0.25")
DYNAMODB_BACKUP_GB_MONTH: Final = Decimal("0.20")
"""Continuous backups, which point-in-time recovery needs.

https://aws.amazon.com/dynamodb/pricing/on-demand/; streams read by Lambda are free."""

S3_PUT: Final = Decimal(5) / MILLION
S3_GET: Final = Decimal("0.4") / MILLION
S3_GB_MONTH: Final = Decimal("0.023")
"""https://aws.amazon.com/s3/pricing/, Standard."""

SQS_REQUEST: Final = Decimal("0.40") / MILLION
SQS_REQUEST_BYTES: Final = 64 * 1024
"""https://aws.amazon.com/sqs/pricing/: each 64 KB of a payload is one request."""

LAMBDA_REQUEST: Final = Decimal("0.20") / MILLION
LAMBDA_GB_SECOND: Final = Decimal("13.3334") / MILLION
"""https://aws.amazon.com/lambda/pricing/, arm64."""

HTTP_API_REQUEST: Final = Decimal("1.00") / MILLION
EVENTBRIDGE_EVENT: Final = Decimal("1.00") / MILLION

LOGS_GB: Final = Decimal("0.50")
CUSTOM_METRIC_MONTH: Final = Decimal("0.30")
"""A month in which it is published all the time; less, by the hour, when it is not."""
ALARM_METRIC_MONTH: Final = Decimal("0.10")
"""An alarm on a computation is paid for by each metric that it reads."""
DASHBOARD_MONTH: Final = Decimal("3.00")
"""https://aws.amazon.com/cloudwatch/pricing/"""

KMS_KEY_MONTH: Final = Decimal("1.00")
"""https://aws.amazon.com/kms/pricing/"""

ELASTICACHE_GB_HOUR: Final = Decimal("0.084")
ELASTICACHE_ECPU: Final = Decimal("0.0023") / MILLION
"""https://aws.amazon.com/elasticache/pricing/, serverless for Valkey; 100 MB are paid for while it
holds less."""
