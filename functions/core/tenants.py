"""Tenants and their API keys, and the items on which they stand.

An API key is a secret that is shown once. What is kept is its SHA-256: 32 random bytes cannot be
guessed, so that no slow hash is needed, and the hash is the item's key, so that one read finds it
(F39).
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from functions.core import keys
from functions.core.items import Item, key_attributes, present
from functions.core.schema import SCHEMA_VERSION, VERSION, refuse_newer
from functions.core.times import SECOND

SECRET_BYTES: Final = 32
ACTIVE: Final = "active"
REVOKED: Final = "revoked"

_PREFIX: Final = "rt_"
_KEY_ID_DIGITS: Final = 16
_KEPT_AFTER_END_S: Final = 30 * 86_400
"""For how long the list still shows a key that is past its time."""


@dataclass(frozen=True, slots=True)
class Tenant:
    tenant_id: str
    created_at: int
    name: str | None = None
    retention_days: int | None = None
    """How long its runs are kept from their start on, if that is shorter than the stage's."""


class KeyStatus(StrEnum):
    ACTIVE = ACTIVE
    REVOKED = REVOKED
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of an API key: its hash, whose it is, and how to recognise it.

    Times are nanoseconds, except `valid_until`: seconds, as in `expires_at`.
    """

    sha256: str
    tenant_id: str
    name: str
    created_at: int
    shown: str
    revoked_at: int | None = None
    valid_until: int | None = None

    @property
    def key_id(self) -> str:
        """The key's public name: it says nothing about the secret."""
        return key_id_of(self.sha256)

    @property
    def ends_at(self) -> int | None:
        """When the key ceased to hold, or will; None when nobody set an end."""
        limit = None if self.valid_until is None else self.valid_until * SECOND
        ends = [end for end in (self.revoked_at, limit) if end is not None]
        return min(ends, default=None)

    def status_at(self, now_ns: int) -> KeyStatus:
        """By the clock: that DynamoDB has not deleted an expired item yet means nothing (F38)."""
        if self.revoked_at is not None:
            return KeyStatus.REVOKED
        if self.ends_at is not None and now_ns >= self.ends_at:
            return KeyStatus.EXPIRED
        return KeyStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key with its secret, which exists nowhere else and is not part of any `repr`."""

    key: ApiKey
    secret: str = field(repr=False)


def issue_key(tenant_id: str, name: str, created_at: int, random: bytes) -> IssuedKey:
    """The key that these random bytes make."""
    secret = _PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()
    shown = f"{secret[:6]}…{secret[-4:]}"
    return IssuedKey(ApiKey(hash_of(secret), tenant_id, name, created_at, shown), secret)


def hash_of(text: str) -> str:
    """Of whatever text a request brings as its key, half surrogates included."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def key_id_of(sha256: str) -> str:
    return sha256[:_KEY_ID_DIGITS]


def tenant_item(tenant: Tenant) -> Item:
    listed = keys.listed_tenant(tenant.tenant_id)
    return {
        **key_attributes(keys.tenant_item(tenant.tenant_id)),
        **present(
            tenant_id=tenant.tenant_id,
            name=tenant.name,
            created_at=tenant.created_at,
            retention_days=tenant.retention_days,
        ),
        VERSION: SCHEMA_VERSION,
        keys.BY_TENANT_PARTITION: listed.partition,
        keys.BY_TENANT_SORT: listed.sort,
    }


def parse_tenant(item: Mapping[str, Any]) -> Tenant:
    """Raises NewerSchema."""
    refuse_newer(item)
    days = item.get("retention_days")
    return Tenant(
        item["tenant_id"],
        int(item["created_at"]),
        item.get("name"),
        None if days is None else int(days),
    )


def key_item(key: ApiKey) -> Item:
    """A key as it is made: active, and without an end."""
    listed = keys.listed_api_key(key.tenant_id, key.created_at, key.key_id)
    return {
        **key_attributes(keys.api_key_item(key.sha256)),
        "tenant_id": key.tenant_id,
        "name": key.name,
        "created_at": key.created_at,
        "shown": key.shown,
        "status": ACTIVE,
        VERSION: SCHEMA_VERSION,
        keys.BY_TENANT_PARTITION: listed.partition,
        keys.BY_TENANT_SORT: listed.sort,
    }


def limit_attributes(valid_until: int) -> Item:
    return {"valid_until": valid_until, keys.EXPIRES: valid_until + _KEPT_AFTER_END_S}


def parse_key(item: Mapping[str, Any]) -> ApiKey:
    """Whatever its status says, if it is not `active`, the key is revoked. Raises NewerSchema."""
    refuse_newer(item)
    revoked_at = None if item["status"] == ACTIVE else int(item.get("revoked_at", 0))
    return ApiKey(
        sha256=keys.parse_api_key_item(item[keys.PARTITION]),
        tenant_id=item["tenant_id"],
        name=item["name"],
        created_at=int(item["created_at"]),
        shown=item["shown"],
        revoked_at=revoked_at,
        valid_until=int(item["valid_until"]) if "valid_until" in item else None,
    )
