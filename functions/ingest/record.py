"""Record one message: its object first, then its items, the run last.

Everything here may run again, and at the same time as itself: an object's name holds the hash of
its bytes, an item is written once per id, and what two writers could decide differently is decided
by order of (at, digest).
"""

import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import cast

from functions.core import keys, retention
from functions.core.deletions import Erasures
from functions.core.errors import Rejected
from functions.core.keys import Pointer, RunRef
from functions.core.model import Outcome, Run
from functions.core.ports import DeadLetters, ObjectStore, Recorded, Refusal, RunStore
from functions.core.retention import DAY_S, times_of
from functions.core.times import SECOND
from functions.ingest.answers import Answer, TakeAnswer
from functions.ingest.claims import redeem, whole
from functions.ingest.settle import Settle, only, start_in
from runtally import wire
from runtally.wire import Head, Message, RunEvent, RunLog, Step


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one message. Counts are of steps and logs, or of answers to invocations; lag
    is from step end to stored; `whose` names tenant and run as a log does."""

    whose: Mapping[str, str] = field(default_factory=dict)
    stored: int = 0
    answers: int = 0
    late_answers: tuple[str, ...] = ()
    duplicates: int = 0
    conflicts: tuple[str, ...] = ()
    after_deletion: int = 0
    payload_bytes: int = 0
    store_lag_ms: int | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Line[E]:
    """An accepted event and the bytes that are stored of it."""

    event: E
    text: bytes


@dataclass(frozen=True, slots=True)
class RecordMessage:
    runs: RunStore
    objects: ObjectStore
    dead_letters: DeadLetters
    take_answer: TakeAnswer
    erasures: Erasures
    now_ns: Callable[[], int]
    retention_days: int
    # A claimed body may take 64 MB several times over: one at a time, however many come at once.
    _one_claim: Lock = field(default_factory=Lock, init=False, repr=False)

    def __call__(self, body: str) -> Result:
        """Store what can be stored; what never can goes to the dead letters with the whole body.
        A body that a note stood for is kept aside anew, to live as long as its letter.

        Raises Unavailable when the message must be delivered again.
        """
        refusals: list[Refusal] = []
        result = Result()
        head: Head | None = None
        try:
            body = whole(self.objects, body)
            message = wire.open_message(body)
            head = message.head
            if head.claim is None:
                result = self._record(message, refusals)
            else:
                with self._one_claim:
                    redeemed = redeem(self.objects, head, head.claim)
                    result = self._record(redeemed, refusals)
        except Rejected as rejected:
            refusals.append(_refusal(rejected))
        if head and (result.after_deletion or refusals):
            result = self._after_deletion(head, result, refusals)
        if refusals:
            self.dead_letters.put_dead_letter(body, refusals)
        return replace(result, refusals=tuple(refusals))

    def _after_deletion(self, head: Head, result: Result, refusals: list[Refusal]) -> Result:
        """Nothing of a deleted run or tenant is kept, as a dead letter neither; and a body that
        came to the inbox after all looks is erased by one more. Of what is not deleted, all stays.
        """
        if not result.after_deletion and not self._is_deleted(head):
            return result
        refusals.clear()
        whose = {"tenant_id": head.tenant_id}
        if head.run_id is not None:
            whose["run_id"] = head.run_id
            if head.claim is not None:
                self.erasures.request_erasure(RunRef(head.tenant_id, head.run_id))
        return replace(result, whose=whose, after_deletion=result.after_deletion or 1)

    def _is_deleted(self, head: Head) -> bool:
        if head.run_id is not None:
            run = self.runs.load_run(RunRef(head.tenant_id, head.run_id))
            if run is not None:
                return run.deleted
        return self.runs.is_tenant_deleted(head.tenant_id)

    def _record(self, message: Message, refusals: list[Refusal]) -> Result:
        tenant_id, run_id = message.head.tenant_id, message.head.run_id
        if run_id is None:
            return _answered(tenant_id, _each(message, self.take_answer, refusals))
        lines = _each(message, self._accept, refusals)
        if not lines:
            return Result(whose={"tenant_id": tenant_id, "run_id": run_id})
        return self._store(RunRef(tenant_id, run_id), message.head.buckets, lines)

    def _accept(self, head: Head, text: bytes, field: str) -> Line[RunEvent]:
        event = wire.decode_event(text, field)
        wire.check_addressed(head, event, field)
        retention.refuse_if_expired(event, field, self.now_ns(), self.retention_days)
        return Line(cast("RunEvent", event), text)  # the only kind that may have a run_id

    def _store(self, ref: RunRef, buckets: int, lines: Sequence[Line[RunEvent]]) -> Result:
        expires_at = self.now_ns() // SECOND + self.retention_days * DAY_S
        start = start_in([(line.event, line.text) for line in lines])
        known = self.runs.load_run(ref)
        if known is None:
            if self.runs.is_tenant_deleted(ref.tenant_id):
                return Result(whose=ref._asdict(), after_deletion=len(lines))
            opened = Run(ref, buckets, start, expires_at)
            known = self.runs.open_run(opened) or opened
        if known.deleted:
            return Result(whose=ref._asdict(), after_deletion=len(lines))
        run = replace(known, expires_at=max(expires_at, known.expires_at))
        recorded = self._put_object(run, lines)
        result = self._append(run, recorded)
        Settle(self.runs, self.now_ns)(known, run, start, recorded)
        return result

    def _put_object(self, run: Run, lines: Sequence[Line[RunEvent]]) -> list[Recorded[RunEvent]]:
        """One object for all lines, a gzip member each, so that a byte range is a whole line."""
        members = [gzip.compress(line.text + b"\n", mtime=0) for line in lines]
        content = b"".join(members)
        first = next((line.event.step_id for line in lines if isinstance(line.event, Step)), None)
        prefix = first or min(times_of(lines[0].event).values())
        name = f"{prefix}-{hashlib.sha256(content).hexdigest()[:8]}"
        self.objects.put_object(keys.object_of_run(run.ref, name), content, run.buckets)
        recorded: list[Recorded[RunEvent]] = []
        now_ns = self.now_ns()
        offset = 0
        for line, member in zip(lines, members, strict=True):
            pointer = Pointer(name, offset, len(member))
            recorded.append(Recorded(line.event, wire.digest(line.text), pointer, now_ns))
            offset += len(member)
        return recorded

    def _append(self, run: Run, recorded: Sequence[Recorded[RunEvent]]) -> Result:
        steps, repeated = _first_of_each_id(only(Step, recorded), lambda step: step.step_id)
        outcomes = list(zip(steps, self.runs.append_steps(run, steps), strict=True)) + repeated
        new = [step.event for step, outcome in outcomes if outcome is Outcome.STORED]
        logs, repeated_logs = _first_of_each_id(only(RunLog, recorded), lambda log: log.log_id)
        of_logs = [(log, self.runs.append_log(run, log)) for log in logs] + repeated_logs
        conflicts = [
            *(step.event.step_id for step, outcome in outcomes if outcome is Outcome.CONFLICT),
            *(log.event.log_id for log, outcome in of_logs if outcome is Outcome.CONFLICT),
        ]
        every = [outcome for _, outcome in outcomes] + [outcome for _, outcome in of_logs]
        newest = max((step.ended_at for step in new), default=None)
        return Result(
            whose=run.ref._asdict(),
            stored=len(new),
            duplicates=every.count(Outcome.DUPLICATE),
            conflicts=tuple(conflicts),
            payload_bytes=sum(len(bytes(step.payload)) for step in new if step.payload),
            store_lag_ms=None if newest is None else (self.now_ns() - newest) // 1_000_000,
        )


def _each[T](
    message: Message, take: Callable[[Head, bytes, str], T], refusals: list[Refusal]
) -> list[T]:
    """What `take` makes of each event; a refused one costs the others nothing."""
    taken: list[T] = []
    for index, text in enumerate(message.lines):
        try:
            taken.append(take(message.head, text, f"events[{index}]"))
        except Rejected as rejected:
            refusals.append(_refusal(rejected))
    return taken


def _answered(tenant_id: str, answers: Sequence[Answer]) -> Result:
    def ids(outcome: Outcome) -> tuple[str, ...]:
        return tuple(one.invocation_id for one in answers if one.outcome is outcome)

    return Result(
        whose={"tenant_id": tenant_id},
        answers=len(ids(Outcome.STORED)),
        late_answers=ids(Outcome.LATE),
        duplicates=len(ids(Outcome.DUPLICATE)),
        conflicts=ids(Outcome.CONFLICT),
    )


def _refusal(rejected: Rejected) -> Refusal:
    return Refusal(rejected.reason, rejected.field, rejected.detail)


def _first_of_each_id[E](
    recorded: Sequence[Recorded[E]], id_of: Callable[[E], str]
) -> tuple[list[Recorded[E]], list[tuple[Recorded[E], Outcome]]]:
    """Within a message too the first of an id wins; others are told apart as the table would."""
    first: dict[str, Recorded[E]] = {}
    others: list[tuple[Recorded[E], Outcome]] = []
    for one in recorded:
        winner = first.setdefault(id_of(one.event), one)
        if winner is not one:
            same = winner.digest == one.digest
            others.append((one, Outcome.DUPLICATE if same else Outcome.CONFLICT))
    return list(first.values()), others
