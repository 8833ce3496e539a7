"""Who&When: conversations of agent teams that failed, labelled with the agent and step at fault.

An entry of the history is a step; its `role` names the agent, at times with what the agent did
(`Orchestrator (-> WebSurfer)`). The labels become attributes of the step at fault and of the run's
start; the step itself counts as succeeded, because no call failed there, only the reasoning. There
are neither times (see `fields.MADE_UP_START`; a step takes a second) nor tokens nor costs.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from local.trajectories import fields
from local.trajectories.recorded_run import RecordedRun
from runtally import wire


class _Case(Struct):
    history: list[Raw]
    question: str
    ground_truth: str
    mistake_agent: str
    mistake_step: str
    mistake_reason: str
    is_corrected: bool = False
    question_ID: str = ""  # noqa: N815 - the file's name for it


class _Entry(Struct):
    role: str


def convert(document: bytes, tenant_id: str) -> list[RecordedRun]:
    """The one run of the file. It failed, unless a later step put the mistake right."""
    case = msgspec.json.decode(document, type=_Case)
    run_id = fields.run_id("who-and-when", case.question_ID, document)
    steps = list(_steps(case, fields.StepIds(run_id)))
    started = wire.RunStarted(
        at=fields.MADE_UP_START,
        pipeline="who-and-when",
        session_id=case.question_ID or None,
        attributes=fields.attributes(
            mistake_agent=case.mistake_agent,
            mistake_step=case.mistake_step,
            mistake_reason=case.mistake_reason,
            question=case.question,
            ground_truth=case.ground_truth,
        ),
    )
    ended = wire.RunEnded(
        at=steps[-1].ended_at if steps else fields.MADE_UP_START,
        status="succeeded" if case.is_corrected else "failed",
        error=None if case.is_corrected else f"{case.mistake_agent}: {case.mistake_reason}",
    )
    return [RecordedRun(run_id, tenant_id, (started, *steps, ended))]


def _steps(case: _Case, ids: fields.StepIds) -> Iterator[wire.Step]:
    at = fields.MADE_UP_START
    for index, raw in enumerate(case.history):
        role = msgspec.json.decode(raw, type=_Entry).role
        at_fault = str(index) == case.mistake_step
        reason = case.mistake_reason if at_fault else None
        yield wire.Step(
            step_id=ids.next(at),
            kind="user" if role == "human" else "agent",
            name=role,
            agent=role.partition(" (")[0],
            status="succeeded",
            started_at=at,
            ended_at=at + fields.MADE_UP_DURATION,
            attributes=fields.attributes(at_fault=True, reason=reason) if at_fault else None,
            payload=fields.payload([raw]),
        )
        at += fields.MADE_UP_DURATION
