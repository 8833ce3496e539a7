"""Short ways to say what a worker sends, for tests that are about something else."""

from typing import Any

import msgspec

from functions.core.keys import RunRef
from runtally import wire
from tests.memory_stage import NOW_NS

RUN = RunRef("acme", "run-1")
SECOND = 1_000_000_000
T0 = NOW_NS - 3_600 * SECOND
"""When the runs of these tests begin: an hour before the stage's now."""


def step_id(n: int) -> str:
    return f"{T0 + n * SECOND}-{n:08x}"


def step(n: int = 1, **fields: Any) -> wire.Step:
    """Step number n: a model call that starts n seconds after T0 and takes a second."""
    payload = fields.pop("payload", None)
    given: dict[str, Any] = {
        "step_id": step_id(n),
        "kind": "model",
        "status": "succeeded",
        "started_at": T0 + n * SECOND,
        "ended_at": T0 + (n + 1) * SECOND,
        **fields,
    }
    if payload is not None:
        given["payload"] = msgspec.Raw(msgspec.json.encode(payload))
    return wire.Step(**given)


def started(at: int = T0, pipeline: str = "research", **fields: Any) -> wire.RunStarted:
    return wire.RunStarted(at=at, pipeline=pipeline, **fields)


def ended(at: int = T0 + 3_000 * SECOND, status: Any = "succeeded", **fields: Any) -> wire.RunEnded:
    return wire.RunEnded(at=at, status=status, **fields)


def log(n: int, *lines: str) -> wire.RunLog:
    return wire.RunLog(log_id=step_id(n), at=T0 + n * SECOND, lines=list(lines))


def answer(invocation_id: str, result: str | None = "done", **fields: Any) -> wire.InvocationEnded:
    given: dict[str, Any] = {"status": "succeeded", "result": result, **fields}
    return wire.InvocationEnded(invocation_id=invocation_id, **given)


def answer_body(*answers: wire.Event, tenant_id: str = "acme") -> str:
    head = wire.Head(v=1, tenant_id=tenant_id)
    return wire.seal(head, [wire.encode_event(one) for one in answers]).decode()


def body(*events: wire.Event, run: RunRef = RUN, buckets: int = 1) -> str:
    head = wire.Head(v=1, tenant_id=run.tenant_id, run_id=run.run_id, buckets=buckets)
    return wire.seal(head, [wire.encode_event(event) for event in events]).decode()
