"""tau-bench results: an assistant with tools serves a simulated user; one file holds many runs.

A message is a step; the system prompt belongs to the first. A tool result that starts with `Error`
failed. The file has neither times (see `fields.MADE_UP_START`; a step takes a second) nor tokens,
and the cost of the simulated user for the run alone (`user_cost`): an attribute of the run's start.
"""

from collections.abc import Iterator
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from local.trajectories import fields
from local.trajectories.recorded_run import RecordedRun
from runtally import wire

_KINDS = {"assistant": "model", "tool": "tool", "user": "user"}


class _Info(Struct):
    user_cost: Decimal | None = None


class _Result(Struct):
    task_id: int
    trial: int
    reward: Decimal
    info: _Info
    traj: list[Raw]


class _Message(Struct):
    role: str
    content: str | None = None
    name: str | None = None


def convert(document: bytes, tenant_id: str) -> list[RecordedRun]:
    """One run a result. It succeeded if the benchmark gave the whole reward."""
    return [_run(bytes(raw), tenant_id) for raw in msgspec.json.decode(document, type=list[Raw])]


def _run(content: bytes, tenant_id: str) -> RecordedRun:
    result = msgspec.json.decode(content, type=_Result)
    label = f"task-{result.task_id}.trial-{result.trial}"
    run_id = fields.run_id("tau-bench", label, content)
    steps = list(_steps(result, fields.StepIds(run_id)))
    started = wire.RunStarted(
        at=fields.MADE_UP_START,
        pipeline="tau-bench",
        session_id=label,
        attributes=fields.attributes(
            task_id=result.task_id,
            trial=result.trial,
            reward=result.reward,
            user_cost=result.info.user_cost,
        ),
    )
    solved = result.reward == 1
    ended = wire.RunEnded(
        at=steps[-1].ended_at if steps else fields.MADE_UP_START,
        status="succeeded" if solved else "failed",
        error=None if solved else f"reward {result.reward}",
    )
    return RecordedRun(run_id, tenant_id, (started, *steps, ended))


def _steps(result: _Result, ids: fields.StepIds) -> Iterator[wire.Step]:
    at = fields.MADE_UP_START
    prompt: list[Raw] = []
    for raw in result.traj:
        message = msgspec.json.decode(raw, type=_Message)
        if message.role == "system":
            prompt.append(raw)
            continue
        failed = message.role == "tool" and (message.content or "").startswith("Error")
        yield wire.Step(
            step_id=ids.next(at),
            kind=_KINDS.get(message.role, "agent"),
            name=message.name or message.role,
            agent="user" if message.role == "user" else "assistant",
            status="failed" if failed else "succeeded",
            error=message.content if failed else None,
            started_at=at,
            ended_at=at + fields.MADE_UP_DURATION,
            payload=fields.payload([*prompt, raw]),
        )
        at += fields.MADE_UP_DURATION
        prompt = []
