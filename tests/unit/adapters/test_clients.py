"""F13, F16: one factory, nothing left to defaults, one client a service."""

import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from decimal import Decimal
from io import BytesIO
from typing import Any, Final
from urllib.parse import parse_qs, urlparse

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError
from msgspec import json
from urllib3 import HTTPResponse

from cdk.api_stack import API_TIMEOUT
from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable, Span
from functions.adapters.s3 import S3ObjectStore
from functions.api.http import TIME_BUDGET_S
from functions.core.errors import Unavailable
from functions.core.keys import Pointer, RunRef


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.mark.parametrize("make", [clients.dynamodb, clients.s3, clients.sqs])
def test_every_client_says_how_it_retries_and_how_long_it_waits(make: Any) -> None:
    config = make().meta.config
    assert config.retries["mode"] == "standard"
    assert config.retries["total_max_attempts"] == 6
    assert (config.connect_timeout, config.read_timeout) == (2, 10)
    at_once = clients.MESSAGES_AT_ONCE + clients.STEPS_AT_ONCE
    assert config.max_pool_connections >= at_once
    # The client's own config does not keep this setting; what it did is there to see.
    serializer = make()._serializer
    assert "Validation" not in type(serializer).__name__


def test_threads_share_one_client_a_service() -> None:
    """Forced: each waits inside the making until all have had the time to enter it."""
    made: list[object] = []

    def make() -> object:
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    client = clients._once(make)
    with ThreadPoolExecutor(32) as pool:
        assert len(set(pool.map(lambda _: id(client()), range(64)))) == 1
    assert len(made) == 1


def test_a_link_is_signed_for_the_bucket_s_own_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """The global host redirects to it, which no signed link survives."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    objects = S3ObjectStore(clients.s3(clients.ANSWERING.merge(Config())), "b-1")
    url = urlparse(objects.link_to_line(RunRef("acme", "r"), Pointer("x", 5, 10), 900))
    assert url.netloc == "b-1.s3.eu-west-1.amazonaws.com"
    query = parse_qs(url.query)
    assert query["X-Amz-Expires"] == ["900"]
    assert query["X-Amz-SignedHeaders"] == ["host;range"]


def test_a_put_does_not_ask_whether_its_body_may_come() -> None:
    client = clients.s3(clients.ANSWERING.merge(Config()))
    asked: list[Any] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        asked.append(request.headers)
        nothing = HTTPResponse(BytesIO(), preload_content=False)
        return AWSResponse(request.url, 200, HTTPHeaders(), nothing)

    events: Any = client.meta.events
    events.register("before-send.s3.PutObject", answer)
    S3ObjectStore(client, "b-1").put_object("k", b"content", buckets=1)
    (headers,) = asked
    assert "If-None-Match" in headers
    assert "Expect" not in headers


def test_a_service_that_hangs_is_given_up_before_the_gateway_gives_up() -> None:
    config: Any = clients.ANSWERING
    worst = config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout)
    assert worst + TIME_BUDGET_S < API_TIMEOUT.to_seconds()


def answered(status: int, body: bytes) -> Any:
    """A DynamoDB client of its own, answered so at the wire instead of sending anything."""
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    client = clients.dynamodb(clients.CONFIG.merge(once))
    raw = HTTPResponse(BytesIO(body), preload_content=False)
    answer = AWSResponse("https://dynamodb.invalid", status, HTTPHeaders(), raw)
    events: Any = client.meta.events
    events.register("before-send.dynamodb", lambda **_: answer)
    return client


ITEM: Final = {
    "PK": {"S": "步骤"},
    "n": {"N": "12345678901234567890.5"},
    "mark": {"B": b64encode(b"\x00\xff").decode()},
    "tree": {"M": {"list": {"L": [{"BOOL": False}, {"NULL": True}, {"S": ""}]}}},
}


@pytest.mark.parametrize("by_botocore", [False, True])
def test_items_are_read_past_botocore_s_parser_with_the_same_result(*, by_botocore: bool) -> None:
    client = answered(200, json.encode({"Items": [ITEM], "LastEvaluatedKey": {"PK": ITEM["PK"]}}))
    if by_botocore:
        client.meta.events.unregister("before-parse.dynamodb.Query", clients._read_as_json)
    page = DynamoDBTable(client, "t").page(Span("p", "a", "b"))
    assert page.last == {"PK": "步骤"}
    assert page.items == [
        {
            "PK": "步骤",
            "n": Decimal("12345678901234567890.5"),
            "mark": b"\x00\xff",
            "tree": {"list": [False, None, ""]},
        }
    ]


def test_no_attribute_of_a_page_is_looked_up_in_botocore_s_model() -> None:
    (item,) = answered(200, json.encode({"Items": [ITEM]})).query()["Items"]
    assert item["mark"] == ITEM["mark"]  # botocore would have made bytes of it


def test_an_error_is_an_error_however_items_are_read() -> None:
    body = b'{"__type":"x#ProvisionedThroughputExceededException","message":"slow down"}'
    with pytest.raises(Unavailable, match="slow down"):
        DynamoDBTable(answered(400, body), "t").page(Span("p", "a", "b"))


THROTTLED: Final = (400, b'{"__type":"x#ThrottlingException","message":"a hot key range"}')
REFUSED: Final = (400, b'{"__type":"x#ConditionalCheckFailedException","message":"no"}')
FAILED: Final = (500, b'{"__type":"x#InternalServerError","message":"no"}')
STORED: Final = (200, b"{}")


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([THROTTLED] * 20 + [STORED], None),
        ([THROTTLED] * 20 + [REFUSED], "ConditionalCheckFailedException"),
        ([THROTTLED] * 20 + [FAILED], "InternalServerError"),
    ],
)
def test_a_patient_client_goes_on_where_botocore_gives_up(
    answers: list[tuple[int, bytes]], code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Botocore makes six attempts; all after these are ours."""
    left = list(answers)
    clients.PATIENCE.begin(10_000_000)

    def send(**_: object) -> AWSResponse:
        status, body = left.pop(0)
        raw = HTTPResponse(BytesIO(body), preload_content=False)
        return AWSResponse("https://dynamodb.invalid", status, HTTPHeaders(), raw)

    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    client = clients.patient(clients.dynamodb(clients.CONFIG.merge(Config())))
    events: Any = client.meta.events
    events.register("before-send.dynamodb", send)
    with pytest.raises(ClientError, match=code) if code else nullcontext():
        client.put_item(TableName="t", Item={})
    assert left == []
    assert len(slept) == len(answers) - 1
    assert max(slept[5:]) <= 5


def test_patience_ends_with_half_of_the_invocation_s_time() -> None:
    now = [100.0]
    patience = clients.Patience(lambda: now[0])
    throttled = (None, {"Error": {"Code": "ThrottlingException"}})
    assert patience.pause(response=throttled) is None  # before any has begun
    patience.begin(120_000)
    pauses = 0
    while (pause := patience.pause(response=throttled)) is not None:
        now[0] += pause
        pauses += 1
    assert 155 <= now[0] <= 160
    assert pauses > 12
    assert patience.pause(response=None) is None
    patience.begin(120_000)
    assert patience.pause(response=(None, {"Error": {"Code": "ValidationException"}})) is None
    assert patience.pause(response=throttled) is not None


def test_a_damaged_page_is_botocore_s_to_repeat() -> None:
    whole = {"body": b'{"Items":[', "status_code": 200}
    answer: dict[str, object] = {}
    clients._read_as_json(whole, answer)
    assert (whole["body"], answer) == (b'{"Items":[', {})
