"""Tenants and keys as the command line manages them."""

from typing import Any, cast

import pytest

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.api.tenants import ManageTenants
from functions.core import keys
from functions.core.errors import Rejected, Unavailable
from functions.core.tenants import IssuedKey, KeyStatus
from functions.core.times import SECOND
from tests.fakes.calls import client_error
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.memory_stage import NOW_NS

DAY_S = 86_400


class Stage:
    def __init__(self) -> None:
        self.now_ns = NOW_NS
        self.dynamodb = MemoryDynamoDB(page_bytes=200)  # one or two entries of the index a page
        tenants = DynamoDBTenants(DynamoDBTable(cast("Any", self.dynamodb), "t"))
        self.manage = ManageTenants(tenants, lambda: self.now_ns)
        self.manage.create_tenant("acme", "Acme Corp.")

    def new_key(self, tenant_id: str = "acme", name: str = "ci") -> IssuedKey:
        """A key as a second later, when the index lists it."""
        issued = self.manage.create_key(tenant_id, name)
        self.dynamodb.settle()
        self.now_ns += SECOND
        return issued

    def rotate(self, old: IssuedKey, overlap_s: int) -> IssuedKey:
        issued = self.manage.rotate_key("acme", old.key.key_id, overlap_s)
        self.dynamodb.settle()
        return issued

    def listed(self, tenant_id: str = "acme") -> list[tuple[str, KeyStatus]]:
        return [
            (key.key_id, key.status_at(self.now_ns)) for key in self.manage.list_keys(tenant_id)
        ]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_tenants_are_listed_by_id(stage: Stage) -> None:
    for tenant_id in ("b", "a.b", "Z", "0"):
        stage.manage.create_tenant(tenant_id)
    stage.dynamodb.settle()
    found = stage.manage.list_tenants()
    assert [tenant.tenant_id for tenant in found] == ["0", "Z", "a.b", "acme", "b"]
    assert [tenant.name for tenant in found if tenant.name] == ["Acme Corp."]


def test_a_tenant_is_made_once(stage: Stage) -> None:
    stage.now_ns += 1
    with pytest.raises(Rejected, match="acme already") as refused:
        stage.manage.create_tenant("acme")
    assert refused.value.reason == "tenant_exists"


@pytest.mark.parametrize("tenant_id", ["", ".a", "a#b", "a/b", "ä", "a\n", "x" * 65, "-"])
def test_an_id_that_no_event_may_carry_is_refused(stage: Stage, tenant_id: str) -> None:
    before = dict(stage.dynamodb.items)
    with pytest.raises(Rejected) as refused:
        stage.manage.create_tenant(tenant_id)
    assert refused.value.field == "tenant_id"
    assert stage.dynamodb.items == before


@pytest.mark.parametrize("name", ["", "  ", "你" * 43])
def test_a_name_says_something_and_is_short(stage: Stage, name: str) -> None:
    for attempt in (
        lambda: stage.manage.create_tenant("other", name),
        lambda: stage.manage.create_key("acme", name),
    ):
        with pytest.raises(Rejected) as refused:
            attempt()
        assert refused.value.field == "name"
    assert stage.manage.create_key("acme", "你" * 42).key.name == "你" * 42


def test_a_key_needs_a_tenant(stage: Stage) -> None:
    for attempt in (
        lambda: stage.manage.create_key("nobody", "ci"),
        lambda: stage.manage.list_keys("nobody"),
        lambda: stage.manage.revoke_key("nobody", "0" * 16),
        lambda: stage.manage.rotate_key("nobody", "0" * 16, 0),
    ):
        with pytest.raises(Rejected) as refused:
            attempt()
        assert refused.value.reason == "tenant_not_found"


def test_keys_are_listed_newest_first_each_tenants_own(stage: Stage) -> None:
    stage.manage.create_tenant("other")
    others = stage.new_key("other").key
    made = [stage.new_key(name=f"key {number}").key for number in range(5)]
    assert stage.manage.list_keys("acme") == made[::-1]
    assert stage.manage.list_keys("other") == [others]


def test_no_two_keys_are_alike_and_no_secret_is_stored(stage: Stage) -> None:
    secrets = [stage.new_key().secret for _ in range(20)]
    assert len(set(secrets)) == 20
    for secret in secrets:
        assert secret[6:-4] not in repr(stage.dynamodb.items)
        assert secret[6:-4] not in repr(stage.dynamodb.stream)


def test_revoking_counts_at_once_and_only_once(stage: Stage) -> None:
    kept, revoked = stage.new_key().key, stage.new_key().key
    first = stage.manage.revoke_key("acme", revoked.key_id)
    assert first.revoked_at == stage.now_ns
    stage.now_ns += SECOND
    assert stage.manage.revoke_key("acme", revoked.key_id) == first
    # The index lags, the keys that it lists are read as they are.
    assert stage.listed() == [
        (revoked.key_id, KeyStatus.REVOKED),
        (kept.key_id, KeyStatus.ACTIVE),
    ]


def test_another_tenants_key_cannot_be_ended(stage: Stage) -> None:
    stage.manage.create_tenant("other")
    key = stage.new_key("other").key
    for attempt in (
        lambda: stage.manage.revoke_key("acme", key.key_id),
        lambda: stage.manage.rotate_key("acme", key.key_id, 0),
    ):
        with pytest.raises(Rejected) as refused:
            attempt()
        assert refused.value.reason == "key_not_found"
    assert stage.listed("other") == [(key.key_id, KeyStatus.ACTIVE)]


def test_a_rotated_key_holds_for_its_overlap(stage: Stage) -> None:
    old = stage.new_key(name="worker")
    new = stage.rotate(old, DAY_S)
    assert (new.key.name, new.key.tenant_id) == ("worker", "acme")
    assert new.secret != old.secret
    assert dict(stage.listed()) == {
        new.key.key_id: KeyStatus.ACTIVE,
        old.key.key_id: KeyStatus.ACTIVE,
    }
    stage.now_ns += DAY_S * SECOND
    assert dict(stage.listed()) == {
        new.key.key_id: KeyStatus.ACTIVE,
        old.key.key_id: KeyStatus.EXPIRED,
    }


def test_without_an_overlap_the_old_key_is_revoked(stage: Stage) -> None:
    old = stage.new_key()
    new = stage.rotate(old, 0)
    assert dict(stage.listed()) == {
        new.key.key_id: KeyStatus.ACTIVE,
        old.key.key_id: KeyStatus.REVOKED,
    }


def test_rotating_again_brings_an_end_forward_and_never_puts_it_off(stage: Stage) -> None:
    old = stage.new_key()

    def end_after(overlap_s: int) -> int | None:
        stage.rotate(old, overlap_s)
        ends = {key.key_id: key.valid_until for key in stage.manage.list_keys("acme")}
        return ends[old.key.key_id]

    now_s = stage.now_ns // SECOND
    assert end_after(100) == now_s + 100
    assert end_after(200) == now_s + 100
    assert end_after(50) == now_s + 50


def test_what_no_longer_holds_is_not_rotated(stage: Stage) -> None:
    revoked, expired = stage.new_key(), stage.new_key()
    stage.manage.revoke_key("acme", revoked.key.key_id)
    stage.rotate(expired, 1)
    stage.now_ns += SECOND
    before = dict(stage.dynamodb.items)
    for key, status in ((revoked, "revoked"), (expired, "expired")):
        with pytest.raises(Rejected, match=status) as refused:
            stage.rotate(key, 0)
        assert refused.value.reason == "key_not_active"
    with pytest.raises(Rejected) as refused:
        stage.rotate(stage.new_key(), -1)
    assert refused.value.field == "overlap"
    assert before.items() <= stage.dynamodb.items.items()


def test_an_old_key_holds_on_when_it_could_not_be_ended(stage: Stage) -> None:
    """The new key is there first: a failure in between locks nobody out."""
    old = stage.new_key()

    def fail(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.update_item", "before"):
            raise client_error("UpdateItem", "InternalServerError")

    stage.dynamodb.calls.hook = fail
    with pytest.raises(Unavailable):
        stage.rotate(old, 0)
    stage.dynamodb.settle()
    assert [status for _, status in stage.listed()] == [KeyStatus.ACTIVE] * 2


def test_a_key_that_is_deleted_while_the_index_lists_it_is_gone(stage: Stage) -> None:
    gone, kept = stage.new_key().key, stage.new_key().key

    def delete(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.query", "after"):
            stage.dynamodb.items.pop(keys.api_key_item(gone.sha256), None)

    stage.dynamodb.calls.hook = delete
    assert stage.listed() == [(kept.key_id, KeyStatus.ACTIVE)]
