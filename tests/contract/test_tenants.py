"""What core.api_ports.Tenants promises, on the fake and on the embedded AWS alike."""

import itertools
from dataclasses import replace

import pytest

from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.core import keys
from functions.core.tenants import ApiKey, Tenant, issue_key
from tests.contract.conftest import Services

pytestmark = pytest.mark.xdist_group("contract")

_numbers = itertools.count(1)
AT = 1_796_000_000_123_456_789


@pytest.fixture
def store(services: Services) -> DynamoDBTenants:
    return DynamoDBTenants(services.table)


@pytest.fixture
def tenant() -> Tenant:
    """A tenant that no other test has touched."""
    return Tenant(f"tenant-{next(_numbers)}", AT, "名前")


def new_key(tenant: Tenant, created_at: int = AT) -> ApiKey:
    return issue_key(tenant.tenant_id, "ci", created_at, next(_numbers).to_bytes(32)).key


def settle(services: Services) -> None:
    """Let the index of the fake catch up; the embedded AWS's does not lag."""
    getattr(services.dynamodb, "settle", lambda: None)()


def test_a_tenant_is_stored_once_and_listed(
    services: Services, store: DynamoDBTenants, tenant: Tenant
) -> None:
    assert store.load_tenant(tenant.tenant_id) is None
    assert store.create_tenant(tenant)
    assert store.create_tenant(tenant)  # the answer was lost, and the write sent again
    assert not store.create_tenant(replace(tenant, created_at=AT + 1))
    assert store.load_tenant(tenant.tenant_id) == tenant
    settle(services)
    listed = store.list_tenants()
    assert listed.count(tenant) == 1
    assert listed == sorted(listed, key=lambda each: each.tenant_id)


def test_a_key_is_found_by_its_hash_and_listed_newest_first(
    services: Services, store: DynamoDBTenants, tenant: Tenant
) -> None:
    made = [new_key(tenant, AT + n) for n in range(3)]
    for key in made:
        assert store.load_key(key.sha256) is None
        store.create_key(key)
        store.create_key(key)
        assert store.load_key(key.sha256) == key
    settle(services)
    assert store.list_keys(tenant.tenant_id) == made[::-1]
    assert store.list_keys(f"{tenant.tenant_id}-other") == []


def test_the_first_revocation_stands(store: DynamoDBTenants, tenant: Tenant) -> None:
    key = new_key(tenant)
    store.create_key(key)
    store.revoke_key(key, AT + 5)
    store.revoke_key(key, AT + 6)
    store.limit_key(key, 100)
    assert store.load_key(key.sha256) == replace(key, revoked_at=AT + 5)


def test_a_limit_only_comes_nearer_and_sets_when_the_item_goes(
    services: Services, store: DynamoDBTenants, tenant: Tenant
) -> None:
    key = new_key(tenant)
    store.create_key(key)
    for asked, stands in ((200, 200), (300, 200), (100, 100)):
        store.limit_key(key, asked)
        assert store.load_key(key.sha256) == replace(key, valid_until=stands)
        item = services.table.get(keys.api_key_item(key.sha256))
        assert item is not None
        assert item[keys.EXPIRES] == stands + 30 * 86_400
    store.revoke_key(key, AT)
    assert store.load_key(key.sha256) == replace(key, valid_until=100, revoked_at=AT)


def test_ending_a_key_that_is_gone_brings_nothing_back(
    store: DynamoDBTenants, tenant: Tenant
) -> None:
    key = new_key(tenant)
    store.revoke_key(key, AT)
    store.limit_key(key, 100)
    assert store.load_key(key.sha256) is None
