"""The rules about API keys: they are made, rotated and revoked, and everywhere asked for."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, invariant, multiple, precondition, rule

from functions.adapters.attributes import from_attributes
from functions.core import keys, tenants
from functions.core.errors import Rejected, Unavailable
from functions.core.tenants import ApiKey, IssuedKey
from tests import build
from tests.simulation.histories.delivering import FAULTS, MINUTE_S, Delivering, Fault
from tests.simulation.histories.told import TENANTS

_KEYS: Final = 5
_OVERLAPS: Final = st.sampled_from((0, MINUTE_S, MINUTE_S, 7_200))


@dataclass(eq=False)
class Issued:
    """A key, and from when on it must be refused."""

    key: IssuedKey
    ends_at: int | None = None

    @property
    def whose(self) -> tuple[str, str]:
        return self.key.key.tenant_id, self.key.key.key_id

    def ends_by(self, at: int) -> None:
        self.ends_at = at if self.ends_at is None else min(self.ends_at, at)

    def holds(self, now_ns: int) -> bool:
        return self.ends_at is None or now_ns < self.ends_at


class Rotating(Delivering):
    api_keys = Bundle("api_keys")

    def __init__(self) -> None:
        super().__init__()
        self.issued: list[Issued] = []

    @precondition(lambda self: len(self.issued) < _KEYS)
    @rule(target=api_keys, tenant_id=st.sampled_from(TENANTS))
    def create_key(self, tenant_id: str) -> Issued:
        return self._issue(self.manage.create_key(tenant_id, "a key"))

    @precondition(lambda self: len(self.issued) < _KEYS)
    @rule(target=api_keys, old=api_keys, overlap_s=_OVERLAPS, listed=st.booleans(), fault=FAULTS)
    def rotate_key(
        self, old: Issued, overlap_s: int, fault: Fault | None, *, listed: bool
    ) -> MultipleResults[Issued]:
        """Meanwhile, somebody else may revoke the very key."""
        held, before = old.holds(self.stage.now_ns), self._keys_there()

        def rotate() -> IssuedKey:
            return self.manage.rotate_key(*old.whose, overlap_s)

        try:
            new = self._try(fault, rotate, lambda: self._revoke(old), listed=listed)
        except Rejected:
            assert self._may_be_unseen(old) or not old.holds(self.stage.now_ns)
            return multiple()
        if new is None:
            another = self._keys_there() > before
            assert self._learn(old) or another, "it ended, and there is no other"
            return multiple()
        assert held
        old.ends_by(self.stage.now_ns // build.SECOND * build.SECOND + overlap_s * build.SECOND)
        return multiple(self._issue(new))

    @rule(issued=api_keys, listed=st.booleans(), fault=FAULTS)
    def revoke_key(self, issued: Issued, fault: Fault | None, *, listed: bool) -> None:
        if self._try(fault, lambda: self._revoke(issued), listed=listed) is None:
            self._learn(issued)

    def _revoke(self, issued: Issued) -> bool:
        """Whether it was found."""
        try:
            key = self.manage.revoke_key(*issued.whose)
        except Rejected:
            assert self._may_be_unseen(issued)
            return False
        issued.ends_by(self.stage.now_ns)
        assert key.ends_at == issued.ends_at
        return True

    @rule(issued=api_keys, tenant_id=st.sampled_from(TENANTS))
    def revoke_elsewhere(self, issued: Issued, tenant_id: str) -> None:
        owner, key_id = issued.whose
        if tenant_id != owner:
            with pytest.raises(Rejected):
                self.manage.revoke_key(tenant_id, key_id)
            with pytest.raises(Rejected):
                self.manage.rotate_key(tenant_id, key_id, 0)

    @invariant()
    def keys_hold_until_they_end(self) -> None:
        for issued in self.issued:
            tenant_id, _ = issued.whose
            answer = self.ask(tenant_id, "GET", "/pipeline-runs", key=issued.key.secret)
            assert answer.status == (200 if issued.holds(self.stage.now_ns) else 401)

    @invariant()
    def lists_say_when_they_end(self) -> None:
        listed = {key.sha256: key for name in TENANTS for key in self.manage.list_keys(name)}
        for issued in self.issued:
            key = listed.get(issued.key.key.sha256)
            assert key or self._may_be_unseen(issued), "a key is missing"
            assert key is None or key.ends_at == issued.ends_at

    # -------------------------------------------------------------------------------------------

    def _issue(self, key: IssuedKey) -> Issued:
        issued = Issued(key)
        self.issued.append(issued)
        return issued

    def _try[T](
        self,
        fault: Fault | None,
        work: Callable[[], T],
        meanwhile: Callable[[], object] | None = None,
        *,
        listed: bool,
    ) -> T | None:
        """What the work answers; None when it got none, and nobody knows. Keys are found by the
        index, which has caught up if they are to be `listed`."""
        if listed:
            self.index_catches_up()
        with suppress(Unavailable):
            return self.under(fault, work, meanwhile)
        return None

    def _learn(self, issued: Issued) -> bool:
        """See what became of a key; whether nothing did."""
        before, stands = issued.ends_at, self._stands(issued)
        if stands is not None:
            issued.ends_at = stands.ends_at
        return issued.ends_at == before

    def _stands(self, issued: Issued) -> ApiKey | None:
        item = self.stage.dynamodb.items.get(keys.api_key_item(issued.key.key.sha256))
        return None if item is None else tenants.parse_key(from_attributes(item))

    def _keys_there(self) -> int:
        return len([sort for _, sort in self.stage.dynamodb.items if sort == keys.API_KEY])

    def _may_be_unseen(self, issued: Issued) -> bool:
        """By the index, which shows keys to those who manage them, or because it is long gone."""
        item = keys.api_key_item(issued.key.key.sha256)
        return item not in self.caught_up or item not in self.stage.dynamodb.items
