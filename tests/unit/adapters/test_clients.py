"""F13, F16: one factory, nothing left to defaults, one client a service."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functions.adapters import clients


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
