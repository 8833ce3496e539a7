"""API keys: what a key looks like, what is kept of it, and when it holds."""

import base64
import hashlib
import re

import pytest

from functions.core import tenants
from functions.core.tenants import ApiKey, KeyStatus, hash_of, issue_key
from functions.core.times import SECOND

RANDOM = bytes(range(32))
MADE_AT = 1_796_000_000_123_456_789


def issued_key() -> tenants.IssuedKey:
    return issue_key("acme", "ci", MADE_AT, RANDOM)


def test_a_secret_is_all_of_its_random_bytes_in_text() -> None:
    secret = issued_key().secret
    assert re.fullmatch(r"rt_[A-Za-z0-9_-]{43}", secret)
    assert base64.urlsafe_b64decode(secret.removeprefix("rt_") + "=") == RANDOM


def test_what_is_kept_of_a_secret_does_not_give_it_away() -> None:
    issued = issued_key()
    key, secret = issued.key, issued.secret
    assert key.sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert key.key_id == key.sha256[:16]
    assert key.shown == f"{secret[:6]}…{secret[-4:]}"
    assert secret[6:-4] not in repr(issued) + repr(key) + repr(tenants.key_item(key))


@pytest.mark.parametrize("text", ["", "ключ", "\ud800", "x" * 10_240])
def test_any_text_has_a_hash_of_its_own(text: str) -> None:
    others = {hash_of(other) for other in ("rt_", "?", "\ud802", "x")}
    assert re.fullmatch(r"[0-9a-f]{64}", hash_of(text))
    assert hash_of(text) not in others


@pytest.mark.parametrize(
    ("revoked_at", "valid_until", "now", "status"),
    [
        (None, None, 10**18, KeyStatus.ACTIVE),
        (None, 100, 100 * SECOND - 1, KeyStatus.ACTIVE),
        (None, 100, 100 * SECOND, KeyStatus.EXPIRED),
        (1, None, 0, KeyStatus.REVOKED),
        (0, 100, 100 * SECOND, KeyStatus.REVOKED),
    ],
)
def test_a_key_holds_until_it_is_revoked_or_its_time_is_over(
    revoked_at: int | None, valid_until: int | None, now: int, status: KeyStatus
) -> None:
    key = ApiKey("5" * 64, "acme", "ci", 0, "…", revoked_at, valid_until)
    assert key.status_at(now) is status


def test_a_key_without_an_end_is_never_deleted_and_one_with_an_end_outlives_it() -> None:
    item = tenants.key_item(issued_key().key)
    assert "expires_at" not in item
    assert tenants.limit_attributes(100) == {"valid_until": 100, "expires_at": 100 + 30 * 86_400}


def test_a_key_reads_back_as_it_was_stored() -> None:
    key = issued_key().key
    assert tenants.parse_key(tenants.key_item(key)) == key


@pytest.mark.parametrize("status", ["revoked", "suspended", ""])
def test_a_status_that_is_not_active_is_a_revocation_whoever_wrote_it(status: str) -> None:
    item = tenants.key_item(issued_key().key) | {"status": status}
    assert tenants.parse_key(item).status_at(MADE_AT) is KeyStatus.REVOKED
