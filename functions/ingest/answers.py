"""Answers to invocations: the whole result first, then the item, once."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

from functions.core import caps, invocations, keys
from functions.core.api_ports import Results, Settling
from functions.core.errors import NotFound, Rejected
from functions.core.invocations import Settlement
from functions.core.keys import InvocationRef
from functions.core.model import Outcome
from runtally import wire
from runtally.wire import Head, InvocationEnded


class Answer(NamedTuple):
    invocation_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class TakeAnswer:
    invocations: Settling
    results: Results
    now_ns: Callable[[], int]

    def __call__(self, head: Head, text: bytes, field: str) -> Answer:
        """Settle the invocation that an event answers, if it is still pending.

        The first answer counts, however late: one after the deadline too, unless somebody was told
        before that the deadline had passed. Repeating it changes nothing. Raises Rejected for what
        answers no invocation, Unavailable when the message must be delivered again.
        """
        event = wire.decode_event(text, field)
        wire.check_addressed(head, event, field)
        answer = cast("InvocationEnded", event)  # the only kind without a run_id
        ref = InvocationRef(head.tenant_id, answer.invocation_id)
        try:
            settlement = invocations.answered(
                answer, wire.digest(text), self.now_ns(), self._put_if_long(ref, answer.result)
            )
            was_pending, stands = self.invocations.settle_invocation(ref, settlement)
        except NotFound:
            where = f"{field}.invocation_id"
            raise Rejected("unknown_invocation", where, "no such invocation") from None
        outcome = Outcome.STORED if was_pending else _beside(stands.settled, settlement)
        return Answer(answer.invocation_id, outcome)

    def _put_if_long(self, ref: InvocationRef, result: str | None) -> str | None:
        """The key of the object that holds a result which its item cannot hold.

        No object of an invocation that is not there: nothing would name it. Raises NotFound.
        """
        whole = (result or "").encode()
        if len(whole) <= caps.INVOCATION_RESULT:
            return None
        invocation = self.invocations.load_invocation(ref)
        if invocation is None or invocation.is_gone(self.now_ns()):
            raise NotFound("there is no such invocation")
        key = keys.result_object(ref, hashlib.sha256(whole).hexdigest())
        self.results.put_whole_result(key, whole)
        return key


def _beside(stands: Settlement | None, answer: Settlement) -> Outcome:
    """What an answer is to an invocation that was settled before it came."""
    if stands is None or stands.digest is None:
        return Outcome.LATE
    return Outcome.DUPLICATE if stands.digest == answer.digest else Outcome.CONFLICT
