"""Who is let in, and that nobody who is not learns why."""

import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.api.auth import Authenticate, Unauthorized
from functions.api.tenants import ManageTenants
from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.tenants import IssuedKey
from functions.core.times import SECOND
from tests.fakes.calls import client_error
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.memory_stage import NOW_NS


class Door:
    """A tenant `acme` with a key, and the authentication in front of it."""

    def __init__(self) -> None:
        self.now_ns = NOW_NS
        self.dynamodb = MemoryDynamoDB()
        tenants = DynamoDBTenants(DynamoDBTable(cast("Any", self.dynamodb), "t"))
        self.manage = ManageTenants(tenants, lambda: self.now_ns)
        self.authenticate = Authenticate(tenants, lambda: self.now_ns)
        self.manage.create_tenant("acme")
        self.key = self.new_key("acme")
        self.dynamodb.calls.made.clear()

    def new_key(self, tenant_id: str) -> IssuedKey:
        issued = self.manage.create_key(tenant_id, "ci")
        self.dynamodb.settle()
        return issued

    def revoked(self) -> str:
        self.manage.revoke_key("acme", self.key.key.key_id)
        return f"Bearer {self.key.secret}"

    def expired(self) -> str:
        self.manage.rotate_key("acme", self.key.key.key_id, overlap_s=60)
        self.now_ns += 60 * SECOND
        return f"Bearer {self.key.secret}"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_a_key_names_its_tenant_with_one_read(scheme: str) -> None:
    door = Door()
    assert door.authenticate(f"{scheme} {door.key.secret}") == "acme"
    assert door.dynamodb.calls.made == ["dynamodb.get_item"]


def test_each_key_names_its_own_tenant() -> None:
    door = Door()
    door.manage.create_tenant("other")
    assert door.authenticate(f"Bearer {door.new_key('other').secret}") == "other"
    assert door.authenticate(f"Bearer {door.key.secret}") == "acme"


REFUSED: dict[str, Callable[[Door], str | None]] = {
    "missing": lambda door: None,
    "empty": lambda door: "",
    "scheme alone": lambda door: "Bearer",
    "empty key": lambda door: "Bearer ",
    "no scheme": lambda door: door.key.secret,
    "another scheme": lambda door: f"Basic {door.key.secret}",
    "wrong": lambda door: "Bearer rt_" + "A" * 43,
    "cut": lambda door: f"Bearer {door.key.secret[:-1]}",
    "longer": lambda door: f"Bearer {door.key.secret}A",
    "two": lambda door: f"Bearer {door.key.secret}, {door.key.secret}",
    "its hash": lambda door: f"Bearer {door.key.key.sha256}",
    "10 KB": lambda door: "Bearer " + "x" * 10_240,
    "not ASCII": lambda door: "Bearer rt_ключ",
    "half a surrogate": lambda door: "Bearer rt_\ud800",
    "revoked": Door.revoked,
    "expired": Door.expired,
}


@pytest.mark.parametrize("header", REFUSED.values(), ids=REFUSED)
def test_whatever_is_no_key_is_refused_alike_with_one_consistent_read(
    header: Callable[[Door], str | None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    door = Door()
    sent = header(door)
    door.dynamodb.calls.made.clear()
    # No `settle`: a read that is not strongly consistent would still see the key as it was made.
    with pytest.raises(Unauthorized) as refused:
        door.authenticate(sent)
    assert door.dynamodb.calls.made == ["dynamodb.get_item"]
    assert refused.value.args == ("no valid API key",)
    assert refused.value.__cause__ is refused.value.__context__ is None
    assert door.key.secret not in caplog.text + repr(door.authenticate) + repr(door.manage)


def test_a_key_holds_until_the_last_moment_of_its_overlap() -> None:
    door = Door()
    door.manage.rotate_key("acme", door.key.key.key_id, overlap_s=60)
    door.now_ns += 60 * SECOND - 1
    assert door.authenticate(f"Bearer {door.key.secret}") == "acme"
    door.now_ns += 1
    with pytest.raises(Unauthorized):
        door.authenticate(f"Bearer {door.key.secret}")
    assert tuple(keys.api_key_item(door.key.key.sha256)) in door.dynamodb.items


def test_that_dynamodb_cannot_answer_is_no_refusal() -> None:
    door = Door()

    def fail(call: str, when: str) -> None:
        raise client_error("GetItem", "InternalServerError")

    door.dynamodb.calls.hook = fail
    with pytest.raises(Unavailable):
        door.authenticate(f"Bearer {door.key.secret}")
