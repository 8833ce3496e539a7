"""A kill before or after any AWS call, then a redelivery: one step, one pointer, exact sums."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from functions.core import keys
from runtally import wire
from tests import build, invariants
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.memory_stage import RECOUNTS, MemoryStage

type When = Literal["before", "after"]


class Killed(BaseException):
    """The sandbox is gone: no handler may catch this."""


STEPS = [
    build.step(n, phase=f"phase {n % 3}", cost_usd=f"0.{n:03}", payload={"n": n, "text": "你" * n})
    for n in range(1, 13)
]
LATE = build.step(99, name="after the end")
MESSAGES = [
    build.body(build.started(), buckets=2),
    build.body(*STEPS[:5], build.log(1, "searching"), buckets=2),
    build.body(*STEPS[5:], build.ended(result="完"), buckets=2),
    build.body(*STEPS[3:7], LATE, buckets=2),
]


def play(stage: MemoryStage, attempt: Callable[[Callable[[], Any]], None]) -> None:
    """A run from first message to summary, each delivery made by `attempt`."""
    for message in MESSAGES:
        attempt(lambda message=message: stage.ingest(message))  # type: ignore[misc]
        lanes: dict[str, list[dict[str, Any]]] = {}
        for record in stage.new_stream_records():
            lanes.setdefault(record["dynamodb"]["Keys"]["PK"]["S"], []).append(record)
        for records in lanes.values():
            attempt(lambda records=records: stage.summarize(records))  # type: ignore[misc]
    while stage.sqs.queues.get(RECOUNTS):
        attempt(stage.recount)


def once(deliver: Callable[[], Any]) -> None:
    assert not deliver()


def calls_of_a_clean_run() -> list[str]:
    stage = MemoryStage()
    play(stage, once)
    return stage.calls.made


CLEAN = calls_of_a_clean_run()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["kill", "error"])
@pytest.mark.parametrize("index", range(len(CLEAN)), ids=lambda n: f"{n}-{CLEAN[n]}")
def test_one_fault_changes_nothing(index: int, how: str, when: When) -> None:
    stage = MemoryStage()
    seen = 0

    def fault(call: str, phase: str) -> None:
        nonlocal seen
        if phase == "after" and call == "dynamodb.put_item":
            invariants.pointers_hold(stage, RUN)
        if phase == "after" and (stage.item(RUN, keys.RUN) or {}).get("end"):
            # RUN comes last: an ended run has all that its end's message brought.
            assert len(stage.items_of(RUN, keys.STEP_PREFIX)) >= len(STEPS)
            assert stage.item(RUN, keys.RESULT)
        if phase != when:
            return
        seen += 1
        if seen == index + 1:
            if how == "kill":
                raise Killed(call)
            raise client_error(call, "InternalServerError")

    stage.calls.hook = fault

    def attempt(deliver: Callable[[], Any]) -> None:
        try:
            failed = deliver()
        except Killed:
            failed = True
        if failed:
            assert not deliver()

    play(stage, attempt)

    plain = MemoryStage()
    play(plain, once)
    assert seen > index
    assert invariants.final_state(stage, RUN) == invariants.final_state(plain, RUN)
    invariants.counted_exactly(stage, RUN, [*STEPS, LATE])
    pointers = [item["pointer"] for item in stage.items_of(RUN, keys.STEP_PREFIX)]
    assert len(set(pointers)) == len(STEPS) + 1
    stored = [stage.line_behind(RUN, pointer) for pointer in pointers]
    assert sorted(stored) == sorted(map(wire.encode_event, [*STEPS, LATE]))
