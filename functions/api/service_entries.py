"""Service entries: call one, poll what became of it, and give up what no worker could do."""

import hashlib
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from functions.api import links, shapes
from functions.core import invocations, keys, retention, times
from functions.core.api_ports import DeadLetterBodies, Invocations, JobQueues, Results, Settling
from functions.core.errors import Conflict, NotFound, Rejected, TooLarge, Unavailable
from functions.core.invocations import Invocation, Settlement
from functions.core.keys import InvocationRef
from runtally import json_text, wire
from runtally.job import Job, open_job, seal_job

JOB_LIMIT_BYTES: Final = wire.SQS_LIMIT_BYTES - 1_024


class InvocationWanted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a service entry is to do. `input` is any JSON: a worker gets it as it was written.

    With a `client_token` the request may be repeated: the same token and input is the same
    invocation, with the deadline that it was given first.
    """

    input: Annotated[msgspec.Raw, Meta(extra_json_schema={"description": "any JSON"})]
    client_token: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    # As long as objects outlive items, at most: so a whole result is there as long as its item.
    deadline_s: Annotated[int, Meta(ge=1, le=7 * retention.DAY_S)] = 3_600


_wanted_decoder: Final = msgspec.json.Decoder(InvocationWanted)
_any_decoder: Final = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Invoke:
    invocations: Invocations
    job_queues: JobQueues
    results: Results
    now_ns: Callable[[], int]
    retention_days: int
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex

    def __call__(self, tenant_id: str, service_entry: str, body: bytes) -> shapes.Invocation:
        """The invocation, whose job is on its queue.

        First the item, then the job, then `sent_at` on the item. Interrupted before the job, the
        invocation is pending until its deadline; interrupted after it, the job is done and
        answered all the same. Asking again with the same client token sends the job while there is
        no `sent_at`, perhaps a second time: then it is done twice, and its first answer counts.

        Raises NotFound for an unknown service entry, Rejected, TooLarge, Conflict when the client
        token came with another input before, and Unavailable: then ask again.
        """
        if service_entry not in self.job_queues.names():
            raise NotFound("there is no such service entry")
        wanted = _open(body)
        new = self._new(tenant_id, service_entry, wanted)
        _seal(new, wanted)  # nothing is stored of what can never be sent
        invocation = self.invocations.create_invocation(new)
        if invocation.input_digest != new.input_digest:
            raise Conflict("client_token", "it came with another input before")
        now_ns = self.now_ns()
        if invocation.sent_at is None and invocation.awaits_answer(now_ns):
            self.job_queues.send_job(service_entry, tenant_id, _seal(invocation, wanted))
            if wanted.client_token is not None:
                # The job is there. Without the mark, asking again would send it a second time.
                with suppress(Unavailable):
                    self.invocations.mark_sent(invocation.ref, now_ns)
        return _shown(_past_deadline(self.invocations, invocation, now_ns), self.results, now_ns)

    def _new(self, tenant_id: str, service_entry: str, wanted: InvocationWanted) -> Invocation:
        now_ns = self.now_ns()
        token = wanted.client_token
        invocation_id = self.new_id()
        if token is not None:
            named = msgspec.json.encode([tenant_id, service_entry, token])
            invocation_id = hashlib.sha256(named).hexdigest()[:32]
        deadline_at = now_ns + wanted.deadline_s * times.SECOND
        return Invocation(
            ref=InvocationRef(tenant_id, invocation_id),
            service_entry=service_entry,
            created_at=now_ns,
            deadline_at=deadline_at,
            input_digest=hashlib.sha256(wanted.input).hexdigest(),
            expires_at=deadline_at // times.SECOND + self.retention_days * retention.DAY_S,
        )


@dataclass(frozen=True, slots=True)
class ReadInvocation:
    invocations: Invocations
    results: Results
    now_ns: Callable[[], int]

    def __call__(self, tenant_id: str, invocation_id: str) -> shapes.Invocation:
        """The invocation as it stands. One that is pending past its deadline has failed from now
        on: what a caller has seen settled never changes. Raises NotFound."""
        now_ns = self.now_ns()
        ref = InvocationRef(tenant_id, invocation_id)
        invocation = self.invocations.load_invocation(ref)
        if invocation is None or invocation.is_gone(now_ns):
            raise NotFound("there is no such invocation")
        return _shown(_past_deadline(self.invocations, invocation, now_ns), self.results, now_ns)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What became of a dead job: the invocation it belongs to, unless it was no job at all.

    `failed` is whether the invocation failed of it: not if it was settled before, or is gone.
    """

    kept_as: str
    ref: InvocationRef | None = None
    failed: bool = False
    refusal: Rejected | None = None


@dataclass(frozen=True, slots=True)
class GiveUpJob:
    invocations: Settling
    bodies: DeadLetterBodies
    now_ns: Callable[[], int]

    def __call__(self, body: str) -> GivenUp:
        """Keep the message of a job that was delivered in vain, and let its invocation fail.

        Repeating it changes nothing. Raises Unavailable.
        """
        content = body.encode("utf-8", "surrogatepass")
        key = keys.dead_letter_object(hashlib.sha256(content).hexdigest())
        self.bodies.put_dead_letter_body(key, content)
        try:
            job = open_job(body)
        except Rejected as rejected:
            return GivenUp(key, refusal=rejected)
        ref = InvocationRef(job.tenant_id, job.invocation_id)
        failed = invocations.unanswered(
            invocations.JOB_FAILED,
            "the job was delivered as often as its queue allows, without an answer",
            self.now_ns(),
        )
        try:
            was_pending, _ = self.invocations.settle_invocation(ref, failed)
        except NotFound:
            return GivenUp(key, ref)
        return GivenUp(key, ref, failed=was_pending)


def _open(body: bytes) -> InvocationWanted:
    try:
        body.decode()  # the decoder does not look into `input`
    except UnicodeDecodeError as error:
        raise Rejected("not_json", "", f"no UTF-8 at byte {error.start:,}") from None
    wanted = wire.decode(_wanted_decoder, json_text.mend_strings(body), "")
    if json_text.deeper_than(bytes(wanted.input)):
        detail = f"nested more than {json_text.MAX_DEPTH} levels"
        raise Rejected("too_deep", "input", detail)
    wire.decode(_any_decoder, bytes(wanted.input), "input")  # what a worker could not read
    return wanted


def _past_deadline(settling: Settling, invocation: Invocation, now_ns: int) -> Invocation:
    """The invocation; one that is still pending past its deadline has failed from now on."""
    if invocation.settled is not None or invocation.awaits_answer(now_ns):
        return invocation
    failed = invocations.unanswered(
        invocations.DEADLINE_PASSED, "no answer came before the deadline", now_ns
    )
    _, stands = settling.settle_invocation(invocation.ref, failed)
    return stands


def _seal(invocation: Invocation, wanted: InvocationWanted) -> str:
    body = seal_job(
        Job(
            v=1,
            tenant_id=invocation.ref.tenant_id,
            service_entry=invocation.service_entry,
            invocation_id=invocation.ref.invocation_id,
            deadline_at=invocation.deadline_at,
            input=wanted.input,
        )
    )
    if len(body.encode()) > JOB_LIMIT_BYTES:
        raise TooLarge("a job may have 1 MiB: put the input in storage and pass its address")
    return body


def _shown(invocation: Invocation, results: Results, now_ns: int) -> shapes.Invocation:
    settled = invocation.settled
    shown = shapes.Invocation(
        invocation_id=invocation.ref.invocation_id,
        service_entry=invocation.service_entry,
        status=invocation.status.value,
        created_at=times.text_of(invocation.created_at),
        deadline_at=times.text_of(invocation.deadline_at),
    )
    if settled is None:
        return shown
    return msgspec.structs.replace(
        shown,
        ended_at=times.text_of(settled.ended_at),
        result=settled.result,
        result_bytes=settled.result_bytes,
        result_truncated=settled.result_object is not None,
        result_link=_link(settled, results, now_ns),
        reason=settled.reason,
        error=settled.error,
    )


def _link(settled: Settlement, results: Results, now_ns: int) -> shapes.Link | None:
    if settled.result_object is None:
        return None
    return links.link(results.link_to_result(settled.result_object, links.LINK_S), now_ns)
