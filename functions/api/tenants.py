"""Managing tenants and their API keys: what the command line does with an account's own rights."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from functions.core import caps
from functions.core.api_ports import Tenants
from functions.core.errors import Rejected
from functions.core.ids import check_tenant_id
from functions.core.tenants import (
    SECRET_BYTES,
    ApiKey,
    IssuedKey,
    KeyStatus,
    Tenant,
    issue_key,
)
from functions.core.times import SECOND


@dataclass(frozen=True, slots=True)
class ManageTenants:
    """Raises Rejected, whose detail says what is wrong, for what cannot be done."""

    tenants: Tenants
    now_ns: Callable[[], int]
    random: Callable[[int], bytes] = secrets.token_bytes

    def create_tenant(self, tenant_id: str, name: str | None = None) -> Tenant:
        check_tenant_id(tenant_id)
        tenant = Tenant(tenant_id, self.now_ns(), None if name is None else _valid(name))
        if not self.tenants.create_tenant(tenant):
            raise Rejected("tenant_exists", "tenant_id", f"there is a tenant {tenant_id} already")
        return tenant

    def list_tenants(self) -> list[Tenant]:
        """By id; one made a moment ago may be missing."""
        return self.tenants.list_tenants()

    def set_retention(self, tenant_id: str, days: int | None, stage_days: int) -> Tenant:
        """The tenant, whose runs are from now on deleted once they are older than that, or kept as
        long as the stage keeps them (None). Only a time shorter than the stage's changes anything.
        """
        if days is not None and not 0 < days < stage_days:
            detail = f"a tenant's retention is 1 to {stage_days - 1} days, the stage's {stage_days}"
            raise Rejected("invalid", "retention_days", detail)
        tenant = self.tenants.set_retention(tenant_id, days)
        if tenant is None:
            raise Rejected("tenant_not_found", "tenant_id", f"there is no tenant {tenant_id}")
        return tenant

    def create_key(self, tenant_id: str, name: str) -> IssuedKey:
        """A new key; its secret is here and nowhere else, and cannot be had again."""
        self._need_tenant(tenant_id)
        return self._issue(tenant_id, _valid(name))

    def list_keys(self, tenant_id: str) -> list[ApiKey]:
        """Newest first; one made a moment ago may be missing."""
        self._need_tenant(tenant_id)
        return self.tenants.list_keys(tenant_id)

    def revoke_key(self, tenant_id: str, key_id: str) -> ApiKey:
        """The key, which holds no longer from now on. Repeating it changes nothing."""
        key, now_ns = self._find(tenant_id, key_id), self.now_ns()
        self.tenants.revoke_key(key, now_ns)
        return key if key.revoked_at is not None else replace(key, revoked_at=now_ns)

    def rotate_key(self, tenant_id: str, key_id: str, overlap_s: int) -> IssuedKey:
        """A new key of the same name; the old one holds for `overlap_s` seconds more, if it did.

        The new key is there before the old one ends. When ending it fails, nobody saw the new
        key's secret: rotate again, and revoke the key that is too many.
        """
        if overlap_s < 0:
            raise Rejected("invalid", "overlap", "an overlap is not negative")
        old = self._find(tenant_id, key_id)
        now_ns = self.now_ns()
        status = old.status_at(now_ns)
        if status is not KeyStatus.ACTIVE:
            detail = f"key {key_id} is {status}: create a new one"
            raise Rejected("key_not_active", "key_id", detail)
        issued = self._issue(tenant_id, old.name)
        if overlap_s:
            self.tenants.limit_key(old, now_ns // SECOND + overlap_s)
        else:
            self.tenants.revoke_key(old, now_ns)
        return issued

    def _issue(self, tenant_id: str, name: str) -> IssuedKey:
        issued = issue_key(tenant_id, name, self.now_ns(), self.random(SECRET_BYTES))
        self.tenants.create_key(issued.key)
        return issued

    def _need_tenant(self, tenant_id: str) -> None:
        if self.tenants.load_tenant(tenant_id) is None:
            raise Rejected("tenant_not_found", "tenant_id", f"there is no tenant {tenant_id}")

    def _find(self, tenant_id: str, key_id: str) -> ApiKey:
        for key in self.list_keys(tenant_id):
            if key.key_id == key_id:
                return key
        detail = (
            f"tenant {tenant_id} has no key {key_id}; one made a moment ago takes a second to show"
        )
        raise Rejected("key_not_found", "key_id", detail)


def _valid(name: str) -> str:
    if not name.strip() or len(name.encode()) > caps.NAME:
        raise Rejected("invalid", "name", f"a name has 1 to {caps.NAME} bytes of UTF-8")
    return name
