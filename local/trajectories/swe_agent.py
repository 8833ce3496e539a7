"""SWE-agent (`*.traj`), of 2024 and of 2025 with function calling: thought, action, observation.

An entry of the trajectory is a step. Tokens and cost are known for the run alone: they become
attributes of its start, and the cost of each step stays unknown. There are no times: the run begins
at `fields.MADE_UP_START`, a step takes its `execution_time` where there is one, else a second. The
`history`, the same steps as chat messages behind the prompts, is left out.
"""

from collections.abc import Iterator
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from local.trajectories import fields
from local.trajectories.recorded_run import RecordedRun
from runtally import wire

_REFUSED_EDIT = "Your proposed edit has introduced new syntax error(s)."
"""How the edit command says that it did nothing. No other outcome of a command is in the file."""


class _ModelStats(Struct):
    instance_cost: Decimal
    tokens_sent: int
    tokens_received: int
    api_calls: int


class _Info(Struct):
    model_stats: _ModelStats
    exit_status: str | None = None
    submission: str | None = None


class _Problem(Struct):
    id: str | None = None


class _ModelConfig(Struct):
    name: str | None = None


class _AgentConfig(Struct):
    model: _ModelConfig = msgspec.field(default_factory=_ModelConfig)


class _ReplayConfig(Struct):
    agent: _AgentConfig = msgspec.field(default_factory=_AgentConfig)
    problem_statement: _Problem = msgspec.field(default_factory=_Problem)


class _Trajectory(Struct):
    trajectory: list[Raw]
    info: _Info
    environment: str
    replay_config: _ReplayConfig = msgspec.field(default_factory=_ReplayConfig)


class _Entry(Struct):
    action: str
    observation: str
    execution_time: Decimal | None = None


def convert(document: bytes, tenant_id: str) -> list[RecordedRun]:
    """The one run of the file. It succeeded if the agent came to submit."""
    trajectory = msgspec.json.decode(document, type=_Trajectory)
    stats = trajectory.info.model_stats
    instance_id = trajectory.replay_config.problem_statement.id
    run_id = fields.run_id("swe-agent", instance_id or trajectory.environment, document)
    steps = list(_steps(trajectory, fields.StepIds(run_id)))
    started = wire.RunStarted(
        at=fields.MADE_UP_START,
        pipeline="swe-agent",
        session_id=instance_id,
        attributes=fields.attributes(
            instance_id=instance_id,
            environment=trajectory.environment,
            exit_status=trajectory.info.exit_status,
            api_calls=stats.api_calls,
            tokens_sent=stats.tokens_sent,
            tokens_received=stats.tokens_received,
            instance_cost=stats.instance_cost,
        ),
    )
    submitted = trajectory.info.exit_status == "submitted"
    ended = wire.RunEnded(
        at=steps[-1].ended_at if steps else fields.MADE_UP_START,
        status="succeeded" if submitted else "failed",
        result=trajectory.info.submission,
        error=None if submitted else trajectory.info.exit_status,
    )
    return [RecordedRun(run_id, tenant_id, (started, *steps, ended))]


def _steps(trajectory: _Trajectory, ids: fields.StepIds) -> Iterator[wire.Step]:
    at = fields.MADE_UP_START
    for raw in trajectory.trajectory:
        entry = msgspec.json.decode(raw, type=_Entry)
        took = entry.execution_time
        ended = at + (fields.MADE_UP_DURATION if took is None else fields.nanoseconds(took))
        refused = entry.observation.startswith(_REFUSED_EDIT)
        yield wire.Step(
            step_id=ids.next(at),
            kind="agent",
            name=entry.action.strip().partition(" ")[0].partition("\n")[0] or None,
            agent="swe-agent",
            model=trajectory.replay_config.agent.model.name,
            status="failed" if refused else "succeeded",
            error=_REFUSED_EDIT if refused else None,
            started_at=at,
            ended_at=ended,
            session_id=trajectory.replay_config.problem_statement.id,
            payload=fields.payload([raw]),
        )
        at = ended
