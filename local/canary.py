"""A small run of known sums, sent as a worker sends it and read back as a reader does."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from functions.api import showing
from functions.core import times
from functions.core.api_ports import RunRecord
from functions.core.keys import RunRef
from local.checks import Finding
from local.reading import Reading
from local.stage import Stage
from runtally import wire
from runtally.cuts import Sealed
from runtally.ids import new_id
from runtally.senders import SqsSender

TENANT: Final = "runtally-doctor"
"""A tenant of its own that nobody has a key for, so that no list of runs shows a canary."""

_WITHIN_S: Final = 60
_PAYLOAD: Final = msgspec.Raw('{"question":"金丝雀 🐤","n":9007199254740993}'.encode())
_EXPECTED: Final = {
    "agents_total": 3,
    "failed_total": 1,
    "cost_usd_total": "0.300000000000000001",
    "cost_unknown_total": 1,
    "input_tokens": 7,
}
_STAGES: Final = ("stored", "counted", "summarised")
_LATE: Final = {
    "stored": "See the event source and the dead letters of events, and the log of ingest.",
    "counted": "See the event source of summarize, and its log.",
    "summarised": "See the log of summarize, and the recount queue.",
}


@dataclass(frozen=True, slots=True)
class Canary:
    """`wait` is called between two looks; each step is timed from when the first was sent."""

    stage: Stage
    wait: Callable[[], object]
    within_s: float = _WITHIN_S

    def findings(self) -> Iterator[Finding]:
        """Sent, stored, counted, summarised, sums, payload; up to the first that fails."""
        reading = Reading.of(self.stage, TENANT)
        steps = _steps()
        ref = RunRef(TENANT, f"canary-{new_id()}")
        started = time.monotonic()
        sender = SqsSender(
            self.stage.event_queue_url, self.stage.bucket_name, sqs=self.stage.sqs, s3=self.stage.s3
        )
        delivery = sender.send(_messages(ref, steps))
        if delivery.unsent or delivery.refused:
            yield Finding("canary sent", False, "the queue did not take it", "See the event queue.")
            return
        yield _timed("sent", f"run {ref.run_id} of tenant {TENANT}", started)
        record = RunRecord()
        for name in _STAGES:
            while not _reached(name, record := reading.reader.record_of(ref), reading, steps):
                if time.monotonic() - started > self.within_s:
                    failed = f"not within {self.within_s:g} s"
                    yield Finding(f"canary {name}", False, failed, _LATE[name])
                    return
                self.wait()
            yield _timed(name, "", started)
        yield _sums(record)
        yield _payload(reading, ref, steps[1].step_id)


def _steps() -> list[wire.Step]:
    now = time.time_ns()

    def step(phase: str, **more: object) -> wire.Step:
        given = {"kind": "tool", "status": "succeeded", "started_at": now, "ended_at": now + 1}
        return msgspec.convert({"step_id": new_id(), "phase": phase, **given, **more}, wire.Step)

    return [
        step("plan", cost_usd="0.1", input_tokens=7),
        msgspec.structs.replace(step("金丝雀", cost_usd="0.200000000000000001"), payload=_PAYLOAD),
        step("act", status="failed", error="Canary: failed on purpose"),
    ]


def _messages(ref: RunRef, steps: list[wire.Step]) -> list[Sealed]:
    """A step comes twice, and the end before the last of them."""
    now = time.time_ns()
    first, second, third = steps
    head = wire.Head(v=1, tenant_id=ref.tenant_id, run_id=ref.run_id)
    messages: list[list[wire.Event]] = [
        [wire.RunStarted(at=now, pipeline="canary"), first],
        [second, first, wire.RunEnded(at=now + times.SECOND, status="succeeded")],
        [third],
    ]
    return [
        Sealed(wire.seal(head, [wire.encode_event(event) for event in events]), len(events))
        for events in messages
    ]


def _reached(name: str, record: RunRecord, reading: Reading, steps: list[wire.Step]) -> bool:
    if name == "stored":
        if record.run is None or record.run.end is None:
            return False
        return len(list(reading.reader.calls_of_run(record.run, ""))) == len(steps)
    if name == "counted":
        return record.totals.agents_total >= len(steps)
    return record.summary is not None and record.summary.totals.agents_total >= len(steps)


def _sums(record: RunRecord) -> Finding:
    shown = msgspec.structs.asdict(showing.sums_of(record))
    wrong = [
        f"{name} is {shown[name]}, not {value}"
        for name, value in _EXPECTED.items()
        if shown[name] != value
    ]
    advice = "The functions and this command line may be of different versions: deploy again."
    return Finding("canary's sums", not wrong, ", ".join(wrong) or "exact", advice if wrong else "")


def _payload(reading: Reading, ref: RunRef, step_id: str) -> Finding:
    answer = reading.api.stored.payload(ref, step_id).answer
    payload = answer.payload
    same = isinstance(payload, msgspec.Raw) and bytes(payload) == bytes(_PAYLOAD)
    if answer.payload_state == "ok" and same:
        return Finding("canary's payload", True, "the same bytes")
    advice = "See whether something else writes to the bucket, or deletes from it."
    return Finding("canary's payload", False, f"it is {answer.payload_state}", advice)


def _timed(name: str, said: str, started: float) -> Finding:
    ms = round((time.monotonic() - started) * 1_000, 1)
    return Finding(f"canary {name}", True, said or f"after {ms:,.0f} ms", ms=ms)
