"""F13, F16: one factory, nothing left to defaults, one client a service."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from botocore.config import Config

from cdk.api_stack import API_TIMEOUT
from functions.adapters import clients
from functions.adapters.s3 import S3ObjectStore
from functions.api.http import TIME_BUDGET_S
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


def test_a_service_that_hangs_is_given_up_before_the_gateway_gives_up() -> None:
    config: Any = clients.ANSWERING
    worst = config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout)
    assert worst + TIME_BUDGET_S < API_TIMEOUT.to_seconds()
