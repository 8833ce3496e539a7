"""A put goes out directly; boto3 is asked for whatever that did not answer."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import ClientError, CredentialRetrievalError
from urllib3 import HTTPConnectionPool, HTTPResponse
from urllib3.connection import HTTPConnection
from urllib3.exceptions import (
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from functions.adapters import clients, settings
from functions.adapters.attributes import to_attributes
from functions.adapters.direct_puts import DirectPuts, with_direct_puts
from functions.adapters.dynamodb import DynamoDBTable, Refused
from functions.ingest import handler

ENDPOINT: Final = "https://dynamodb.eu-west-1.amazonaws.com"
BY_BOTO3: Final = {"by": "boto3"}
STORED: Final = {"ConsumedCapacity": {"CapacityUnits": 1.0, "TableName": "t"}}
MOMENT: Final = datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)
ITEM: Final = to_attributes({"PK": "語", "name": 'é "😀"\n', "counts": b"\xff\x00", "n": 1})
REQUEST: Final = {"TableName": "t", "Item": ITEM, "ConditionExpression": "attribute_not_exists(PK)"}
REFUSAL: Final = {
    "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
    "message": "The conditional request failed",
}
CREDENTIALS: Final = Credentials("AKID", "SECRET", "TOKEN")


class Boto3:
    """The client, which always stores."""

    def __init__(self) -> None:
        config = SimpleNamespace(user_agent="runtally")
        self.meta = SimpleNamespace(endpoint_url=ENDPOINT, region_name="eu-west-1", config=config)
        self.asked: list[Any] = []

    def put_item(self, **request: Any) -> Any:
        self.asked.append(request)
        return BY_BOTO3

    def get_item(self, **request: Any) -> Any:
        return request


@dataclass
class Pool:
    """Gives this answer to everything, or fails so."""

    answer: tuple[int, Any] | Exception
    headers: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)

    def urlopen(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> HTTPResponse:
        assert (method, url) == ("POST", "/")
        self.sent.append((body, headers))
        if isinstance(self.answer, Exception):
            raise self.answer
        status, told = self.answer
        content = told if isinstance(told, bytes) else msgspec.json.encode(told)
        return HTTPResponse(BytesIO(content), self.headers, status)


def direct(
    pool: Pool,
    boto3: Any = None,
    credentials: Credentials = CREDENTIALS,
    now: Callable[[], float] = MOMENT.timestamp,
) -> DirectPuts:
    client: Any = boto3 or Boto3()
    connections: Any = pool
    return DirectPuts(client, credentials, connections, now)


def as_botocore_signs(
    body: bytes, credentials: Credentials, moment: datetime, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The headers of a put with this body."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: moment)
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": "DynamoDB_20120810.PutItem",
    }
    request = AWSRequest("POST", f"{ENDPOINT}/", headers, body)
    SigV4Auth(credentials, "dynamodb", "eu-west-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@pytest.mark.parametrize(
    "credentials", [CREDENTIALS, Credentials("AKID", "SECRET")], ids=["token", "no token"]
)
def test_a_put_is_signed_as_botocore_signs_it_today_and_tomorrow(
    credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool((200, STORED))
    moments = [MOMENT, MOMENT + timedelta(seconds=1)]
    clock = iter(moments)
    puts = direct(pool, credentials=credentials, now=lambda: next(clock).timestamp())
    for moment in moments:
        assert puts.put_item(**REQUEST) == STORED
        body, headers = pool.sent.pop()
        expected = as_botocore_signs(body, credentials, moment, monkeypatch)
        assert headers == expected | {
            "host": "dynamodb.eu-west-1.amazonaws.com",
            "user-agent": "runtally",
        }
        assert msgspec.json.decode(body) == REQUEST | {"Item": ITEM | {"counts": {"B": "/wA="}}}


def test_credentials_that_were_refreshed_sign_the_next_put() -> None:
    clock = [MOMENT]

    def new() -> dict[str, str]:
        until = (clock[0] + timedelta(hours=1)).isoformat()
        keys = {"access_key": "new-id", "secret_key": "new", "token": "new-token"}
        return {**keys, "expiry_time": until}

    credentials = RefreshableCredentials(
        *("old-id", "old", "old-token"),
        expiry_time=MOMENT + timedelta(hours=1),
        refresh_using=new,
        method="test",
        time_fetcher=lambda: clock[0],
    )
    pool = Pool((200, STORED))
    puts = direct(pool, credentials=credentials)
    for name in ("old", "new"):
        puts.put_item(**REQUEST)
        _, headers = pool.sent.pop()
        assert f"Credential={name}-id/" in headers["authorization"]
        assert headers["x-amz-security-token"] == f"{name}-token"
        clock[0] += timedelta(hours=2)


def test_what_dynamodb_answers_is_the_answer() -> None:
    boto3, told = Boto3(), {"ConsumedCapacity": {"CapacityUnits": 1.5, "TableName": "t"}}
    assert direct(Pool((200, told)), boto3).put_item(**REQUEST) == told
    assert boto3.asked == []


def test_a_condition_that_does_not_hold_is_an_answer_with_the_item_that_stands_there() -> None:
    boto3, stands = Boto3(), {"PK": "a", "counts": b"\xff\x00", "n": 2}
    pool = Pool((400, REFUSAL | {"Item": to_attributes(stands)}))
    with pytest.raises(ClientError, match=r"PutItem.*The conditional request failed") as error:
        direct(pool, boto3).put_item(**REQUEST)
    assert error.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    client: Any = direct(pool, boto3)
    with pytest.raises(Refused) as refused:
        DynamoDBTable(client, "t").put({"PK": "a"}, "attribute_not_exists(PK)")
    assert refused.value.item == stands
    assert boto3.asked == []


def test_a_condition_that_does_not_hold_where_nothing_stands() -> None:
    client: Any = direct(Pool((400, REFUSAL)))
    with pytest.raises(Refused) as refused:
        DynamoDBTable(client, "t").put({"PK": "a"}, "attribute_exists(PK)")
    assert refused.value.item is None


def failing(name: str) -> tuple[int, Any]:
    return 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{name}"}


NOWHERE: Final[Any] = HTTPConnectionPool("127.0.0.1")


@pytest.mark.parametrize(
    "answer",
    [
        failing("ProvisionedThroughputExceededException"),
        failing("ThrottlingException"),
        failing("ExpiredTokenException"),
        failing("InvalidSignatureException"),
        (400, {}),
        (400, {"__type": None}),
        (500, {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}),
        (503, b"<html>"),
        (503, REFUSAL),
        (200, REFUSAL),
        (307, {}),
        (200, {}),  # whoever that is, it is no table
        (200, b'{"ConsumedCap'),
        (200, b"[]"),
        (200, b'{"a":"\xff"}'),
        (200, b""),
        NewConnectionError(HTTPConnection("127.0.0.1"), "refused"),
        ProtocolError("Connection aborted."),
        ReadTimeoutError(NOWHERE, "/", "timed out"),
        SSLError("not trusted"),
    ],
    ids=repr,
)
def test_boto3_is_asked_after_anything_else(answer: tuple[int, Any] | Exception) -> None:
    boto3, pool = Boto3(), Pool(answer)
    assert direct(pool, boto3).put_item(**REQUEST) == BY_BOTO3
    assert boto3.asked == [REQUEST]
    assert len(pool.sent) == 1


@pytest.mark.parametrize(("checksum", "asked"), [("3992989245", 0), ("3992989244", 1)])
def test_boto3_is_asked_when_the_answer_is_not_what_was_sent(checksum: str, asked: int) -> None:
    boto3 = Boto3()
    direct(Pool((200, STORED), {"x-amz-crc32": checksum}), boto3).put_item(**REQUEST)
    assert len(boto3.asked) == asked


def test_after_many_puts_in_a_row_without_an_answer_boto3_is_asked_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = Pool((503, b""))
    puts = direct(pool)
    for _ in range(199):
        puts.put_item(**REQUEST)
    pool.answer = (200, STORED)
    assert puts.put_item(**REQUEST) == STORED
    pool.answer = (503, b"")
    for _ in range(300):
        assert puts.put_item(**REQUEST) == BY_BOTO3
    assert len(pool.sent) == 400
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:4566/dynamodb",
        "https://dynamodb-fips.us-gov-west-1.amazonaws.com",
    ],
)
def test_some_endpoints_are_left_to_botocore(endpoint: str) -> None:
    boto3: Any = Boto3()
    boto3.meta.endpoint_url = endpoint
    assert with_direct_puts(boto3, CREDENTIALS) is boto3


def test_boto3_says_why_there_are_no_credentials() -> None:
    class Gone(Credentials):
        def get_frozen_credentials(self) -> Any:
            raise CredentialRetrievalError(provider="test", error_msg="gone")

    boto3, pool = Boto3(), Pool((200, STORED))
    assert direct(pool, boto3, Gone("a", "b")).put_item(**REQUEST) == BY_BOTO3
    assert pool.sent == []


def test_everything_else_is_boto3_s() -> None:
    boto3 = Boto3()
    puts = direct(Pool((200, STORED)), boto3)
    assert puts.get_item(Key=1) == {"Key": 1}
    assert puts.meta is boto3.meta


def test_nothing_shows_the_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    puts = direct(Pool((200, STORED)))
    puts.put_item(**REQUEST)
    told = f"{puts!r} {puts._signer!r} {caplog.text}"
    assert "SECRET" not in told
    assert "TOKEN" not in told


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    return monkeypatch


def boto3_client() -> Any:
    return clients.dynamodb(clients.CONFIG.merge(Config()))


def pool_of(client: Any) -> Any:
    return client._pool


def test_its_connections_are_as_patient_and_as_trusting_as_boto3_s(
    environment: pytest.MonkeyPatch,
) -> None:
    pool = pool_of(with_direct_puts(boto3_client(), CREDENTIALS))
    assert (pool.scheme, pool.host) == ("https", "dynamodb.eu-west-1.amazonaws.com")
    assert (pool.timeout.connect_timeout, pool.timeout.read_timeout) == (2, 10)
    assert pool.pool.maxsize == clients.MESSAGES_AT_ONCE + clients.STEPS_AT_ONCE
    assert pool.retries.total is False
    assert (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1) in pool.conn_kw["socket_options"]
    assert pool.cert_reqs == "CERT_REQUIRED"
    assert pool.ca_certs.endswith("cacert.pem")
    environment.setenv("REQUESTS_CA_BUNDLE", "/theirs.pem")
    assert pool_of(with_direct_puts(boto3_client(), CREDENTIALS)).ca_certs == "/theirs.pem"
    environment.setenv("AWS_CA_BUNDLE", "/ours.pem")
    assert pool_of(with_direct_puts(boto3_client(), CREDENTIALS)).ca_certs == "/ours.pem"


def test_all_is_left_to_boto3_behind_a_proxy_or_without_credentials(
    environment: pytest.MonkeyPatch,
) -> None:
    client = boto3_client()
    assert with_direct_puts(client, None) is client
    environment.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    assert with_direct_puts(client, CREDENTIALS) is client
    environment.setenv("NO_PROXY", ".amazonaws.com")
    assert with_direct_puts(client, CREDENTIALS) is not client


def test_ingest_puts_directly_with_the_credentials_of_its_clients(
    environment: pytest.MonkeyPatch,
) -> None:
    for name in (settings.TABLE, settings.BUCKET, settings.RETENTION_DAYS):
        environment.setenv(name, "1")
    environment.setenv(settings.DEAD_LETTER_QUEUE_URL, "https://sqs.invalid/d")
    environment.setenv(settings.ERASURE_QUEUE_URL, "https://sqs.invalid/e")
    client: Any = handler._ingest.__wrapped__().table._client
    assert type(client) is DirectPuts
    boto3: Any = client._client
    assert client._credentials is boto3._request_signer._credentials
