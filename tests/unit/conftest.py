"""Unit tests open no sockets; only asyncio's own pair, which leaves no process, is allowed."""

from collections.abc import Iterator

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def no_sockets() -> Iterator[None]:
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()


@pytest.fixture
def metrics_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish metrics, which the other tests do not look at."""
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED")
