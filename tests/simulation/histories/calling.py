"""The rules about invocations: asked for, done or given up, settled once, and polled."""

import hashlib
import json
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, invariant, multiple, precondition, rule

from functions.adapters.attributes import from_attributes
from functions.core import keys
from functions.core.items import Item
from functions.core.keys import InvocationRef
from runtally.job import Job, open_job
from tests import build
from tests.api import Answer
from tests.memory_stage import JOBS
from tests.simulation.histories.asked import Asked, is_gone, is_pending
from tests.simulation.histories.delivering import FAULTS, MINUTE_S, Delivering, Fault, Message
from tests.simulation.histories.told import TENANTS, secret_of

_NO_JOB: Final = "what is no job"
_SHOWN: Final = ("status", "result", "result_bytes", "reason", "error")
type Token = tuple[str, str, int]
"""Whose it is, for which service entry, and its number."""

_TOKENS: Final = st.sampled_from(
    (
        ("acme", "research", 1),
        ("acme", "research", 2),
        ("acme", "translate", 1),
        ("globex", "research", 1),
    )
)
"""Few, so that most are used again, and each differs from the first in one way."""


class Calling(Delivering):
    invocations = Bundle("invocations")

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[InvocationRef, Asked] = {}
        self._named: dict[Token, InvocationRef] = {}
        self._tried: dict[Token, set[int]] = {}
        self._seen: dict[InvocationRef, Any] = {}

    def of(self, ref: InvocationRef) -> Asked:
        return self.asked.setdefault(ref, Asked(ref))

    # -- callers --------------------------------------------------------------------------------

    @rule(
        target=invocations,
        token=_TOKENS,
        number=st.sampled_from((1, 1, 1, 2)),
        deadline_s=st.sampled_from((MINUTE_S, 9_000)),
        fault=FAULTS,
    )
    def invoke(
        self, token: Token, number: int, deadline_s: int, fault: Fault | None
    ) -> MultipleResults[InvocationRef]:
        """Perhaps again, after an answer that was lost, or long after the first time; perhaps to
        do something else with a token that was used."""
        tenant_id, entry, name = token
        text = json.dumps([secret_of(tenant_id), number])
        wanted = f'{{"input": {text}, "client_token": "{name}", "deadline_s": {deadline_s}}}'
        self._tried.setdefault(token, set()).add(number)
        jobs = self.stage.jobs(entry)
        for one in self.asked.values():  # whichever it is that the token names
            one.polled_at.add(self.stage.now_ns)
        path = f"/service-entries/{entry}/invocations"
        answer = self.under(fault, lambda: self.ask(tenant_id, "POST", path, body=wanted))
        if answer is None or (fault and answer.status == 503):
            return multiple()
        if answer.status == 409:
            assert len(self._tried[token]) > 1, "nothing else was asked for"
            return multiple()
        assert answer.status == 202, answer.body
        ref = InvocationRef(tenant_id, answer.json["invocation_id"])
        assert self._named.setdefault(token, ref) == ref, "another invocation"
        item = self._check_shown(ref, answer, fault)
        assert item["service_entry"] == entry
        assert item["input_digest"] == hashlib.sha256(text.encode()).hexdigest()
        self._check_jobs(self.of(ref), item, self.stage.jobs(entry), len(jobs), fault)
        return multiple(ref)

    def _check_jobs(
        self, asked: Asked, item: Item, queue: list[str], queued: int, fault: Fault | None
    ) -> None:
        """The job is there once: only when nobody knows whether it is, it may be sent again."""
        jobs, born = [open_job(body) for body in queue], int(item["created_at"])
        for job in jobs[queued:]:
            assert _is_of(job, asked.ref, item)
            assert hashlib.sha256(job.input).hexdigest() == item["input_digest"]
            assert self.stage.now_ns < job.deadline_at, "a job that nobody waits for"
            assert born not in asked.sent, "its job was there"
        if fault is None and is_pending(item):
            assert any(_is_of(job, asked.ref, item) for job in jobs), "pending, without a job"
            asked.sent.add(born)

    @rule(ref=invocations, tenant_id=st.sampled_from((None, None, *TENANTS)), fault=FAULTS)
    def poll(self, ref: InvocationRef, tenant_id: str | None, fault: Fault | None) -> None:
        """Perhaps with an id that is another tenant's."""
        ref = InvocationRef(tenant_id or ref.tenant_id, ref.invocation_id)
        self.of(ref).polled_at.add(self.stage.now_ns)
        path = f"/invocations/{ref.invocation_id}"
        answer = self.under(fault, lambda: self.get(ref.tenant_id, path))
        if answer is None or (fault and answer.status == 503):
            return
        item = self.stage.invocation_item(*reversed(ref))
        if item is None or is_gone(item, self.stage.now_ns):
            assert answer.status == 404, answer.body
            return
        assert answer.status == 200, answer.body
        self._check_shown(ref, answer, fault)

    def _check_shown(self, ref: InvocationRef, answer: Answer, fault: Fault | None) -> Item:
        """The item that was shown: as it is, unless it was settled after it was read."""
        item, shown = self.stage.invocation_item(*reversed(ref)), answer.json
        assert item is not None
        assert not is_gone(item, self.stage.now_ns)
        late = self.stage.now_ns >= item["deadline_at"]
        assert not (late and shown["status"] == "pending"), "pending past its deadline"
        if fault is None or shown["status"] != "pending":
            assert {n: shown.get(n) for n in _SHOWN} == {n: item.get(n) for n in _SHOWN}
            assert ("result_link" in shown) == ("result_object" in item)
        return item

    # -- workers --------------------------------------------------------------------------------

    @rule(
        target=Delivering.messages,
        ref=invocations,
        number=st.integers(1, 3),
        tenant_id=st.sampled_from((None, None, *TENANTS)),
        alone=st.booleans(),
        fault=FAULTS,
    )
    def answer(
        self,
        ref: InvocationRef,
        number: int,
        tenant_id: str | None,
        fault: Fault | None,
        *,
        alone: bool,
    ) -> Message:
        """Perhaps another tenant's, with an id that it may have heard of."""
        ref = InvocationRef(tenant_id or ref.tenant_id, ref.invocation_id)
        body = build.answer_body(self.of(ref).answer(number), tenant_id=ref.tenant_id)
        message = self.queue(Message(body, lambda: self._is_taken(ref, body)))
        if alone:
            self.ingest([message], fault)
        return message

    def _is_taken(self, ref: InvocationRef, body: str) -> None:
        """An answer was acknowledged."""
        if not self._is_settled(ref):
            letters = [letter["body"] for letter in self.stage.dead_letters()]
            assert body in letters, "it answers nothing, and is no dead letter"

    def _is_settled(self, ref: InvocationRef) -> bool:
        """It must be by now, if it is still there."""
        item = self.stage.invocation_item(*reversed(ref))
        if item is None or is_gone(item, self.stage.now_ns):
            return False
        assert not is_pending(item), "acknowledged, and still pending"
        return True

    @precondition(lambda self: self._jobs())
    @rule(data=st.data(), fault=FAULTS)
    def give_up_jobs(self, data: st.DataObject, fault: Fault | None) -> None:
        """One batch, perhaps with what is no job; they may all be given up again."""
        jobs = st.sampled_from([*self._jobs(), *self._jobs(), _NO_JOB])
        batch = data.draw(st.lists(jobs, min_size=1, max_size=3))
        for body in batch:
            if body != _NO_JOB:
                self.of(_ref_of(body)).given_up_at.add(self.stage.now_ns)
        failed = self.attempt(fault, lambda: self.stage.dead_jobs(*batch))
        for position, body in enumerate(batch):
            if failed is not None and str(position) not in failed:
                key = keys.dead_letter_object(hashlib.sha256(body.encode()).hexdigest())
                assert self.stage.s3.objects[key] == body.encode()
                if body != _NO_JOB:
                    self._is_settled(_ref_of(body))

    def _jobs(self) -> list[str]:
        return [body for entry in JOBS for body in self.stage.jobs(entry)]

    # -------------------------------------------------------------------------------------------

    @invariant()
    def what_is_settled_stays(self) -> None:
        for (partition, sort), attributes in self.stage.dynamodb.items.items():
            if sort == keys.INVOCATION:
                asked = self.of(keys.parse_invocation_item(partition))
                if self._seen.get(asked.ref) is not attributes:
                    self._seen[asked.ref] = attributes
                    asked.check(self.stage, from_attributes(attributes))


def _ref_of(body: str) -> InvocationRef:
    job = open_job(body)
    return InvocationRef(job.tenant_id, job.invocation_id)


def _is_of(job: Job, ref: InvocationRef, item: Item) -> bool:
    """Of this of its lives."""
    return (job.tenant_id, job.service_entry, job.invocation_id, job.deadline_at) == (
        ref.tenant_id,
        item["service_entry"],
        ref.invocation_id,
        item["deadline_at"],
    )
