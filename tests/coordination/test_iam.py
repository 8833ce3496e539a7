"""The password that ElastiCache takes: a signed request, without its scheme."""

import itertools
from urllib.parse import parse_qs, urlsplit

import pytest
import valkey

from runtally.coordination import Coordinator, ElastiCacheIam, Unavailable
from tests.coordination.server import Server, programs


@pytest.fixture
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


@pytest.mark.usefixtures("_credentials")
def test_it_is_signed_for_one_user_of_one_cache() -> None:
    user, password = ElastiCacheIam("runtally-worker", "runtally-dev").get_credentials()
    assert user == "runtally-worker"
    assert "very-secret" not in password
    assert password.startswith("runtally-dev/?")
    query = parse_qs(urlsplit(f"https://{password}").query)
    assert query["Action"] == ["connect"]
    assert query["User"] == ["runtally-worker"]
    assert query["ResourceType"] == ["ServerlessCache"]
    assert query["X-Amz-Expires"] == ["900"]
    assert query["X-Amz-Security-Token"] == ["a-token"]
    assert "/eu-central-1/elasticache/aws4_request" in query["X-Amz-Credential"][0]
    assert len(query["X-Amz-Signature"][0]) == 64


@pytest.mark.usefixtures("_credentials")
def test_it_is_made_anew_before_it_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("runtally.coordination.iam.time.monotonic", lambda: now)
    iam = ElastiCacheIam("worker", "cache", region="us-east-1")
    passwords = itertools.count(1)
    monkeypatch.setattr(iam, "_signed", lambda: f"password-{next(passwords)}")
    assert iam.get_credentials() == ("worker", "password-1")
    now += 600
    assert iam.get_credentials() == ("worker", "password-1")
    now += 1
    assert iam.get_credentials() == ("worker", "password-2")


def test_without_credentials_whoever_asks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when they went away: it is no other error than a server that cannot be reached."""
    monkeypatch.setattr("boto3.Session.get_credentials", lambda _: None)
    iam = ElastiCacheIam("worker", "cache", region="us-east-1")
    with pytest.raises(valkey.ConnectionError, match="no password can be made: Unable to locate"):
        iam.get_credentials()
    with Server(programs()[0]) as server:
        coordinator = Coordinator(tenant_id="acme", url=server.url, iam=iam)
        with coordinator, pytest.raises(Unavailable, match="Unable to locate credentials"):
            coordinator.open("run-1")
