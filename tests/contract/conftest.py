"""The same suite on the fakes and on the embedded AWS, so that the fakes stay honest."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from functions.adapters.clients import CONFIG
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.s3 import S3ObjectStore
from functions.core.keys import RunRef
from local.emulator import REGION, Emulator
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.fakes.eventbridge import MemoryEvents
from tests.fakes.s3 import MemoryS3
from tests.fakes.sqs import MemorySQS

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Services:
    """Clients of the services, real or fake, and the names to use with them."""

    dynamodb: Any
    s3: Any
    sqs: Any
    table_name: str
    bucket: str
    queue_url: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", DynamoDBTable(self.dynamodb, self.table_name))

    table: DynamoDBTable = None  # type: ignore[assignment]
    events: Any = None

    @property
    def runs(self) -> DynamoDBRunStore:
        return DynamoDBRunStore(self.table)

    @property
    def totals(self) -> DynamoDBTotalsStore:
        return DynamoDBTotalsStore(self.table)

    @property
    def objects(self) -> S3ObjectStore:
        return S3ObjectStore(self.s3, self.bucket)


def _key(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def _emulated(emulator: Emulator) -> Services:
    def client(service: str) -> Any:
        return boto3.client(  # type: ignore[call-overload]
            service,
            endpoint_url=emulator.access.endpoint,
            aws_access_key_id=emulator.access.access_key_id,
            aws_secret_access_key=emulator.access.secret_access_key,
            region_name=REGION,
            config=CONFIG,
        )

    dynamodb, s3, sqs = client("dynamodb"), client("s3"), client("sqs")
    names = ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
    dynamodb.create_table(
        TableName="contract",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in names],
        KeySchema=_key("PK", "SK"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": "GSI1",
                "KeySchema": _key("GSI1PK", "GSI1SK"),
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["status", "pipeline"],
                },
            },
            {
                "IndexName": "GSI2",
                "KeySchema": _key("GSI2PK", "GSI2SK"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
    )
    s3.create_bucket(Bucket="contract")
    queue_url = sqs.create_queue(QueueName="contract")["QueueUrl"]
    events = client("events")
    return Services(dynamodb, s3, sqs, "contract", "contract", queue_url, events=events)


@pytest.fixture(scope="session")
def emulated() -> Iterator[Services]:
    with Emulator() as emulator:
        services = _emulated(emulator)
        yield services
        for client in (services.dynamodb, services.s3, services.sqs, services.events):
            client.close()


@pytest.fixture(params=["memory", "emulator"])
def services(request: pytest.FixtureRequest) -> Services:
    if request.param == "emulator":
        emulated: Services = request.getfixturevalue("emulated")
        return emulated
    clients = MemoryDynamoDB(), MemoryS3(), MemorySQS()
    return Services(*clients, "t", "b", "memory://queue", events=MemoryEvents())


@pytest.fixture
def ref() -> RunRef:
    """A run that no other test has touched."""
    return RunRef("acme", f"run-{next(_numbers)}")
