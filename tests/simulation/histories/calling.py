"""The rules about those who call: API keys that come and go, and invocations that are settled."""

import json
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, invariant, multiple, precondition, rule

from functions.adapters.attributes import from_attributes
from functions.core import keys
from functions.core.errors import Rejected
from functions.core.keys import InvocationRef
from functions.core.tenants import IssuedKey
from tests import build
from tests.simulation.histories.delivering import FAULTS, Delivering, Fault, Message
from tests.simulation.histories.told import TENANTS, secret_of

_ENTRY: Final = "research"


@dataclass(eq=False)
class Issued:
    """A key, and from when on it must be refused."""

    key: IssuedKey
    ends_at: int | None = None

    def ends_by(self, at: int) -> None:
        self.ends_at = at if self.ends_at is None else min(self.ends_at, at)

    def holds(self, now_ns: int) -> bool:
        return self.ends_at is None or now_ns < self.ends_at


class Calling(Delivering):
    api_keys = Bundle("api_keys")
    invocations = Bundle("invocations")

    def __init__(self) -> None:
        super().__init__()
        self.issued: list[Issued] = []
        self.known: dict[tuple[str, int], InvocationRef] = {}
        self.answers: dict[InvocationRef, set[str]] = {}
        self.settled: dict[tuple[str, int], Any] = {}

    # -- keys -----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.issued) < 4)
    @rule(target=api_keys, tenant_id=st.sampled_from(TENANTS))
    def create_key(self, tenant_id: str) -> Issued:
        return self._issue(self.manage.create_key(tenant_id, "a key"))

    @precondition(lambda self: len(self.issued) < 4)
    @rule(target=api_keys, old=api_keys, overlap_s=st.sampled_from((0, 60)))
    def rotate_key(self, old: Issued, overlap_s: int) -> MultipleResults[Issued]:
        held = old.holds(self.stage.now_ns)
        try:
            new = self.manage.rotate_key(old.key.key.tenant_id, old.key.key.key_id, overlap_s)
        except Rejected:
            assert self._may_be_unseen(old) or not held
            return multiple()
        assert held
        old.ends_by(self.stage.now_ns // build.SECOND * build.SECOND + overlap_s * build.SECOND)
        return multiple(self._issue(new))

    @rule(issued=api_keys)
    def revoke_key(self, issued: Issued) -> None:
        try:
            self.manage.revoke_key(issued.key.key.tenant_id, issued.key.key.key_id)
        except Rejected:
            assert self._may_be_unseen(issued)
        else:
            issued.ends_by(self.stage.now_ns)

    @invariant()
    def keys_hold_until_they_end(self) -> None:
        for issued in self.issued:
            tenant_id, secret = issued.key.key.tenant_id, issued.key.secret
            answer = self.ask(tenant_id, "GET", "/pipeline-runs", key=secret)
            assert answer.status == (200 if issued.holds(self.stage.now_ns) else 401)

    def _issue(self, key: IssuedKey) -> Issued:
        issued = Issued(key)
        self.issued.append(issued)
        return issued

    def _may_be_unseen(self, issued: Issued) -> bool:
        """By the index, which shows keys to those who manage them, or because it is long gone."""
        item = keys.api_key_item(issued.key.key.sha256)
        return item not in self.caught_up or item not in self.stage.dynamodb.items

    # -- invocations ----------------------------------------------------------------------------

    @rule(
        target=invocations,
        tenant_id=st.sampled_from(TENANTS),
        token=st.integers(1, 2),
        deadline_s=st.sampled_from((60, 9_000)),
        fault=FAULTS,
    )
    def invoke(
        self, tenant_id: str, token: int, deadline_s: int, fault: Fault | None
    ) -> MultipleResults[InvocationRef]:
        """Perhaps again, after an answer that was lost, or long after the first time."""
        wanted = {
            "input": [secret_of(tenant_id), token],
            "client_token": f"{token}",
            "deadline_s": deadline_s,
        }
        answers: list[Any] = []

        def ask() -> list[str]:
            path = f"/service-entries/{_ENTRY}/invocations"
            body = json.dumps(wanted)
            answers.append(self.ask(tenant_id, "POST", path, body=body))
            return []

        self.attempt(fault, ask)
        if not answers or (fault and answers[0].status == 503):
            return multiple()
        assert answers[0].status == 202, answers[0].body
        ref = InvocationRef(tenant_id, answers[0].json["invocation_id"])
        assert self.known.setdefault((tenant_id, token), ref) == ref, "another invocation"
        return multiple(ref)

    @rule(
        target=Delivering.messages,
        ref=invocations,
        number=st.integers(1, 2),
        tenant_id=st.sampled_from((None, *TENANTS)),
    )
    def answer(self, ref: InvocationRef, number: int, tenant_id: str | None) -> Message:
        """Perhaps another tenant's, with an id that it may have heard of."""
        sender = tenant_id or ref.tenant_id
        ended = build.answer(ref.invocation_id, f"{secret_of(sender)} {number}")
        message = Message(build.answer_body(ended, tenant_id=sender))
        if sender == ref.tenant_id:
            self.answers.setdefault(ref, set()).add(ended.result or "")
        return self.queue(message)

    @precondition(lambda self: self.stage.jobs(_ENTRY))
    @rule(data=st.data(), fault=FAULTS)
    def give_up_job(self, data: st.DataObject, fault: Fault | None) -> None:
        job = data.draw(st.sampled_from(self.stage.jobs(_ENTRY)))
        self.attempt(fault, lambda: self.stage.dead_jobs(job))

    @rule(ref=invocations)
    def poll(self, ref: InvocationRef) -> None:
        answer = self.get(ref.tenant_id, f"/invocations/{ref.invocation_id}")
        item = self.stage.invocation_item(ref.invocation_id, ref.tenant_id)
        if item is None or int(item[keys.EXPIRES]) * build.SECOND <= self.stage.now_ns:
            assert answer.status == 404, answer.body
            return
        shown = answer.json
        assert (shown["status"], shown.get("result")) == (item["status"], item.get("result"))
        late = self.stage.now_ns >= int(item["deadline_at"])
        assert not (late and shown["status"] == "pending"), "pending past its deadline"

    @rule(ref=invocations, tenant_id=st.sampled_from(TENANTS))
    def poll_elsewhere(self, ref: InvocationRef, tenant_id: str) -> None:
        answer = self.get(tenant_id, f"/invocations/{ref.invocation_id}")
        assert answer.status in {200, 404}
        assert answer.status == 404 or tenant_id == ref.tenant_id, answer.body

    @invariant()
    def what_is_settled_stays(self) -> None:
        for (partition, sort), attributes in self.stage.dynamodb.items.items():
            if sort != keys.INVOCATION:
                continue
            item = from_attributes(attributes)
            item.pop("sent_at", None)
            if item["status"] != "pending":
                by_answer = item.get("result") in self.answers.get(
                    keys.parse_invocation_item(partition), ()
                )
                assert by_answer or "reason" in item, "settled by nobody"
            # An expired invocation may be made anew under the same id.
            made = partition, int(item["created_at"])
            assert item == self.settled.get(made, item), "it was settled, and changed"
            if item["status"] != "pending":
                self.settled[made] = item
