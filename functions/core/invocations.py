"""Invocations of service entries, and the item on which each of them stands.

An invocation is pending until one of three settles it: an answer, its deadline, or its job that
nobody could do. The first of them counts, and nothing changes it afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from functions.core import caps, keys
from functions.core.items import Item, key_attributes, present
from functions.core.keys import InvocationRef
from functions.core.schema import SCHEMA_VERSION, VERSION, refuse_newer
from functions.core.times import SECOND
from runtally.wire import InvocationEnded

DEADLINE_PASSED: Final = "deadline_passed"
JOB_FAILED: Final = "job_failed"


class InvocationStatus(StrEnum):
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an invocation ended. `digest` is the answering event's; without an answer there is a
    `reason` instead.

    `result` holds at most 300,000 bytes; `result_object` is the key of the whole one, if it was cut
    for that.
    """

    status: InvocationStatus
    ended_at: int
    digest: str | None = None
    result: str | None = None
    result_bytes: int | None = None
    result_object: str | None = None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a service entry. Times are nanoseconds, except `expires_at`: seconds."""

    ref: InvocationRef
    service_entry: str
    created_at: int
    deadline_at: int
    input_digest: str
    expires_at: int
    sent_at: int | None = None
    settled: Settlement | None = None

    @property
    def status(self) -> InvocationStatus:
        return self.settled.status if self.settled else InvocationStatus.PENDING

    def awaits_answer(self, now_ns: int) -> bool:
        return self.settled is None and now_ns < self.deadline_at

    def is_gone(self, now_ns: int) -> bool:
        """By the clock: DynamoDB may take days to delete what has expired (F38)."""
        return now_ns >= self.expires_at * SECOND


def answered(event: InvocationEnded, digest: str, at: int, result_object: str | None) -> Settlement:
    """What an answer settles. A result that is too long for the item is still that result."""
    result = event.result
    return Settlement(
        status=InvocationStatus(event.status),
        ended_at=at,
        digest=digest,
        result=None if result is None else caps.cut(result, caps.INVOCATION_RESULT),
        result_bytes=None if result is None else len(result.encode()),
        result_object=result_object,
        error=None if event.error is None else caps.cut(event.error, caps.RUN_ERROR),
    )


def unanswered(reason: str, error: str, at: int) -> Settlement:
    return Settlement(InvocationStatus.FAILED, at, reason=reason, error=error)


def invocation_item(invocation: Invocation) -> Item:
    """An invocation as it is made: pending, its job not sent yet."""
    return {
        **key_attributes(keys.invocation_item(invocation.ref)),
        "service_entry": invocation.service_entry,
        "status": InvocationStatus.PENDING.value,
        "created_at": invocation.created_at,
        "deadline_at": invocation.deadline_at,
        "input_digest": invocation.input_digest,
        VERSION: SCHEMA_VERSION,
        keys.EXPIRES: invocation.expires_at,
    }


def settlement_attributes(settled: Settlement) -> Item:
    return present(
        status=settled.status.value,
        ended_at=settled.ended_at,
        digest=settled.digest,
        result=settled.result,
        result_bytes=settled.result_bytes,
        result_truncated=settled.result_object is not None or None,
        result_object=settled.result_object,
        reason=settled.reason,
        error=settled.error,
    )


def parse_invocation(item: Mapping[str, Any]) -> Invocation:
    """Raises NewerSchema."""
    refuse_newer(item)
    return Invocation(
        ref=keys.parse_invocation_item(item[keys.PARTITION]),
        service_entry=item["service_entry"],
        created_at=int(item["created_at"]),
        deadline_at=int(item["deadline_at"]),
        input_digest=item["input_digest"],
        expires_at=int(item[keys.EXPIRES]),
        sent_at=_whole(item, "sent_at"),
        settled=_parse_settlement(item),
    )


def _parse_settlement(item: Mapping[str, Any]) -> Settlement | None:
    status = InvocationStatus(item["status"])
    if status is InvocationStatus.PENDING:
        return None
    return Settlement(
        status=status,
        ended_at=int(item["ended_at"]),
        digest=item.get("digest"),
        result=item.get("result"),
        result_bytes=_whole(item, "result_bytes"),
        result_object=item.get("result_object"),
        reason=item.get("reason"),
        error=item.get("error"),
    )


def _whole(item: Mapping[str, Any], name: str) -> int | None:
    return int(item[name]) if name in item else None
