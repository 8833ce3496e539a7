"""What is known of an invocation by those who ask for it, answer it or give up its job."""

from dataclasses import dataclass, field
from typing import Final

from functions.core import caps, invocations, keys
from functions.core.items import Item
from functions.core.keys import InvocationRef
from functions.core.retention import DAY_S
from runtally.wire import InvocationEnded
from tests import build
from tests.build import SECOND
from tests.memory_stage import MemoryStage
from tests.simulation.histories.delivering import RETENTION_DAYS
from tests.simulation.histories.told import secret_of

_FIXED: Final = ("service_entry", "created_at", "deadline_at", "input_digest", keys.EXPIRES)


def is_gone(item: Item, now_ns: int) -> bool:
    """Whether or not it is still there."""
    return int(item[keys.EXPIRES]) * SECOND <= now_ns


def is_pending(item: Item) -> bool:
    return bool(item["status"] == "pending")


@dataclass(eq=False)
class Asked:
    """An invocation. It may live more than once: when it has expired, it may be made anew under
    the same id, at another time."""

    ref: InvocationRef
    answers: dict[int, InvocationEnded] = field(default_factory=dict)
    polled_at: set[int] = field(default_factory=set)
    given_up_at: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    """When those of its lives began whose job is certainly on its queue."""
    item: Item | None = None
    """As it was when it was seen last."""

    def answer(self, number: int) -> InvocationEnded:
        """The same number is the same answer again."""
        secret, ref = secret_of(self.ref.tenant_id), self.ref.invocation_id
        made = {
            1: lambda: build.answer(ref, secret),
            2: lambda: build.answer(ref, None, status="failed", error=secret),
            3: lambda: build.answer(ref, secret + "é" * (caps.INVOCATION_RESULT // 2)),
        }
        return self.answers.setdefault(number, made[number]())

    def check(self, stage: MemoryStage, item: Item) -> None:
        """Settled once, by somebody, and as it was told."""
        before, self.item = self.item, item
        expires_at = int(item["deadline_at"]) // SECOND + RETENTION_DAYS * DAY_S
        assert item[keys.EXPIRES] == expires_at
        if before and before["created_at"] != item["created_at"]:
            assert is_gone(before, stage.now_ns), "made anew, though it was there"
            before = None
        if before and (is_gone(before, stage.now_ns) or not is_pending(before)):
            late = {"sent_at": None}
            assert before | late == item | late, "it was settled or gone, and changed"
            return
        assert before is None or all(before[name] == item[name] for name in _FIXED)
        if not is_pending(item):
            self._check_settled(stage, item)

    def _check_settled(self, stage: MemoryStage, item: Item) -> None:
        reason, ended_at = item.get("reason"), item["ended_at"]
        if reason == invocations.DEADLINE_PASSED:
            assert item["deadline_at"] <= ended_at, "failed before its deadline"
            assert ended_at in self.polled_at, "failed when nobody asked"
            return
        if reason == invocations.JOB_FAILED:
            assert ended_at in self.given_up_at, "failed when nobody gave it up"
            return
        stands = item["status"], item.get("error"), _result_of(stage, item)
        told = [(one.status, one.error, one.result) for one in self.answers.values()]
        assert stands in told, "settled by nobody"


def _result_of(stage: MemoryStage, item: Item) -> str | None:
    """The whole result: where there is more than the item holds, from its object."""
    held: str | None = item.get("result")
    whole = held
    if item.get("result_truncated"):
        whole = stage.s3.objects[item["result_object"]].decode()
        assert whole.startswith(held or "")
    if whole is not None:
        assert item["result_bytes"] == len(whole.encode())
    return whole
