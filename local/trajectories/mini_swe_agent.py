"""mini-swe-agent (`*.traj.json`): a model and a shell in turns, with real times, tokens and costs.

A message of the assistant is a model call, a message of the tool a command; the prompt belongs to
the first step and the farewell (`exit`) to the last, so that every message is in exactly one
payload. The file gives only when something was done: a step began when the one before was.
"""

from collections.abc import Iterator
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from local.trajectories import fields
from local.trajectories.recorded_run import RecordedRun
from runtally import wire


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _PromptDetails | None = None


class _Response(Struct):
    id: str
    created: int
    model: str
    usage: _Usage


class _Extra(Struct):
    timestamp: Decimal | None = None
    response: _Response | None = None
    cost: Decimal | None = None
    returncode: int | None = None
    exception_info: str | None = None


class _Message(Struct):
    role: str
    extra: _Extra = msgspec.field(default_factory=_Extra)


class _ModelStats(Struct):
    instance_cost: Decimal
    api_calls: int


class _ModelConfig(Struct):
    model_name: str


class _Config(Struct):
    model: _ModelConfig


class _Info(Struct):
    model_stats: _ModelStats
    config: _Config
    mini_version: str
    exit_status: str
    submission: str = ""


class _Trajectory(Struct):
    info: _Info
    instance_id: str
    messages: list[Raw]


def convert(document: bytes, tenant_id: str) -> list[RecordedRun]:
    """The one run of the file. It succeeded if the agent came to submit."""
    trajectory = msgspec.json.decode(document, type=_Trajectory)
    info = trajectory.info
    run_id = fields.run_id("mini-swe-agent", trajectory.instance_id, document)
    steps = list(_steps(trajectory, fields.StepIds(run_id)))
    if not steps:
        raise msgspec.ValidationError("nothing but a prompt")
    started = wire.RunStarted(
        at=steps[0].started_at,
        pipeline="mini-swe-agent",
        session_id=trajectory.instance_id,
        attributes=fields.attributes(
            instance_id=trajectory.instance_id,
            mini_version=info.mini_version,
            exit_status=info.exit_status,
            api_calls=info.model_stats.api_calls,
            instance_cost=info.model_stats.instance_cost,
        ),
    )
    submitted = info.exit_status == "Submitted"
    ended = wire.RunEnded(
        at=steps[-1].ended_at,
        status="succeeded" if submitted else "failed",
        result=info.submission or None,
        error=None if submitted else info.exit_status,
    )
    return [RecordedRun(run_id, tenant_id, (started, *steps, ended))]


def _steps(trajectory: _Trajectory, ids: fields.StepIds) -> Iterator[wire.Step]:
    provider = trajectory.info.config.model.model_name.partition("/")[0]
    done = 0
    for records in _records_of_steps(trajectory.messages):
        message = next(m for raw in records if (m := _message(raw)).role in {"assistant", "tool"})
        extra = message.extra
        if extra.timestamp is None:
            raise msgspec.ValidationError(f"a message of the {message.role} without a timestamp")
        ended = fields.nanoseconds(extra.timestamp)
        if not done:
            done = extra.response.created * 1_000_000_000 if extra.response else ended
        step = wire.Step(
            step_id=ids.next(done),
            kind="model" if message.role == "assistant" else "tool",
            name="chat" if message.role == "assistant" else "bash",
            agent="mini-swe-agent",
            status="succeeded",
            started_at=done,
            ended_at=ended,
            session_id=trajectory.instance_id,
            payload=fields.payload(records),
        )
        yield (
            _with_usage(step, extra.response, extra.cost, provider)
            if extra.response
            else _with_outcome(step, extra)
        )
        done = ended


def _records_of_steps(messages: list[Raw]) -> Iterator[list[Raw]]:
    """Messages by step: those before the first go with it, those after a step stay with it."""
    group: list[Raw] = []
    acted = False
    for raw in messages:
        acts = _message(raw).role in {"assistant", "tool"}
        if acts and acted:
            yield group
            group = []
        acted = acted or acts
        group.append(raw)
    if acted:
        yield group


def _with_usage(
    step: wire.Step, response: _Response, cost: Decimal | None, provider: str
) -> wire.Step:
    details = response.usage.prompt_tokens_details
    return msgspec.structs.replace(
        step,
        model=response.model,
        provider=provider,
        input_tokens=response.usage.prompt_tokens,
        output_tokens=response.usage.completion_tokens,
        cached_tokens=details.cached_tokens if details else None,
        cost_usd=None if cost is None else fields.money(cost),
        attributes=fields.attributes(response_id=response.id),
    )


def _with_outcome(step: wire.Step, extra: _Extra) -> wire.Step:
    failed = extra.returncode != 0 or bool(extra.exception_info)
    return msgspec.structs.replace(
        step,
        status="failed" if failed else "succeeded",
        error=(extra.exception_info or f"exit code {extra.returncode}") if failed else None,
        attributes=fields.attributes(returncode=extra.returncode),
    )


def _message(raw: Raw) -> _Message:
    return msgspec.json.decode(raw, type=_Message)
