"""No tenant reads another: whatever is asked with another's ids is as if it had never been."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from functions.api import cursors
from functions.api.operations import OPERATIONS
from functions.core.keys import RunRef
from tests import build
from tests.api import Answer, HttpClient, issue_key
from tests.memory_stage import EVENTS, MemoryStage

CANARY = "canary7c41"
"""In every text of the watched tenant, its ids included, and nowhere else."""
WATCHED = RunRef(f"{CANARY}-tenant", f"{CANARY}-run")
STEP = build.step(
    1,
    **dict.fromkeys(("name", "phase", "agent", "session_id", "model", "provider"), CANARY),
    price_table=CANARY,
    error=CANARY,
    attributes={CANARY: [CANARY]},
    payload={CANARY: CANARY},
)
RUN = f"/pipeline-runs/{WATCHED.run_id}"
DELETED = f"/pipeline-runs/{CANARY}-deleted"
CALL = f"{RUN}/calls/{STEP.step_id}"
INVOKE = "/service-entries/research/invocations"
WANTED = json.dumps({"input": {"ask": CANARY}, "client_token": CANARY})


@dataclass(frozen=True)
class Attempt:
    """A request with what belongs to the watched tenant, and how it is answered to another one."""

    path: str
    status: int
    query: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    method: str = ""
    shows: Callable[[Any], bool] = lambda answer: "reason" in answer

    def send(self, client: HttpClient) -> Answer:
        method = self.method or ("GET" if self.body is None else "POST")
        return client.send(method, self.path, query=self.query, body=self.body)


def no_runs(shown: dict[str, Any]) -> bool:
    return shown["runs"] in (0, [])


class House:
    """A stage with two tenants: one recorded all that can be recorded, the other one is curious."""

    def __init__(self) -> None:
        self.stage = MemoryStage()
        self.owner = HttpClient(self.stage, issue_key(self.stage, WATCHED.tenant_id))
        self.other = HttpClient(self.stage, issue_key(self.stage, "curious"))
        self.record(
            build.started(pipeline=CANARY, session_id=CANARY, attributes={CANARY: CANARY}),
            STEP,
            build.log(2, CANARY),
            build.ended(result=CANARY * 8_000, error=CANARY, status="failed"),
        )
        for other in ("2", "deleted"):
            ref = RunRef(WATCHED.tenant_id, f"{CANARY}-{other}")
            self.record(build.started(build.T0 + 1), run=ref)
        assert self.owner.send("DELETE", DELETED).status == 202
        invocation = self.owner.send("POST", INVOKE, body=WANTED).json
        self.invocation_id: str = invocation["invocation_id"]
        answer = build.answer(self.invocation_id, CANARY * 40_000, error=CANARY)
        body = build.answer_body(answer, tenant_id=WATCHED.tenant_id)
        assert self.stage.ingest(body) == []

    def record(self, *events: Any, run: RunRef = WATCHED) -> None:
        assert self.stage.ingest(build.body(*events, run=run)) == []
        self.stage.drain()
        self.stage.dynamodb.settle()

    def take_in(self) -> None:
        """Ingest what was sent over HTTP."""
        sent = self.stage.sqs.queues.pop(EVENTS, [])
        assert self.stage.ingest(*(message.body for message in sent)) == []
        self.stage.drain()
        self.stage.dynamodb.settle()

    def watched(self) -> str:
        """All that is stored of the watched tenant."""
        kept = {key: item for key, item in self.stage.dynamodb.items.items() if CANARY in str(key)}
        objects = {key: body for key, body in self.stage.s3.objects.items() if CANARY in key}
        return repr((kept, objects))

    def attempts(self) -> dict[str, list[Attempt]]:
        """By operation."""
        cursor = self.owner.get("/pipeline-runs", limit="1").json["next"]
        call_cursor = cursors.encode(f"calls {WATCHED.tenant_id} {WATCHED.run_id}", STEP.step_id)
        both = {"view": "compare", "a": WATCHED.run_id, "b": WATCHED.run_id}
        answered = build.answer(self.invocation_id, "another's")
        forged = build.answer_body(answered, tenant_id=WATCHED.tenant_id)
        misled = build.answer_body(answered, tenant_id="curious")
        return {
            "listRuns": [
                Attempt("/pipeline-runs", 200, shows=no_runs),
                Attempt("/pipeline-runs", 200, {"pipeline": CANARY}, shows=no_runs),
                Attempt("/pipeline-runs", 400, {"limit": "1", "cursor": cursor}),
            ],
            "readRun": [Attempt(RUN, 404), Attempt(RUN, 400, {"cursor": call_cursor})],
            "readResult": [Attempt(f"{RUN}/result", 404)],
            "readPayload": [Attempt(f"{CALL}/payload", 404)],
            "readEvent": [Attempt(f"{CALL}/event", 404)],
            "deleteRun": [Attempt(RUN, 404, method="DELETE")],
            "readDeletion": [
                Attempt(f"{DELETED}/deletion", 404),
            ],
            "readInsights": [
                Attempt("/insights", 200, {"view": "summary"}, shows=no_runs),
                Attempt("/insights", 404, both),
            ],
            "invoke": [
                Attempt(INVOKE, 202, body=WANTED, shows=self._is_another),
                Attempt(INVOKE, 202, body=WANTED, shows=self._is_another),
            ],
            "readInvocation": [Attempt(f"/invocations/{self.invocation_id}", 404)],
            "sendEvents": [
                Attempt("/events", 403, body=build.body(STEP, run=WATCHED)),
                Attempt("/events", 403, body=forged),
                Attempt("/events", 202, body=misled, shows=lambda it: it["accepted"] == 1),
            ],
        }

    def _is_another(self, invocation: dict[str, Any]) -> bool:
        same = invocation["invocation_id"] == self.invocation_id
        return not same and invocation["status"] == "pending"


@pytest.fixture
def house() -> House:
    return House()


def test_every_operation_is_attempted(house: House) -> None:
    assert set(house.attempts()) == {operation.name for operation in OPERATIONS}


@pytest.mark.parametrize("operation", [operation.name for operation in OPERATIONS])
def test_another_tenant_gets_nothing(
    operation: str, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "api")
    before = house.watched()
    for attempt in house.attempts()[operation]:
        answer = attempt.send(house.other)
        assert (answer.status, attempt.shows(answer.json)) == (attempt.status, True), answer.body
        assert CANARY not in answer.body.decode() + str(answer.headers)
    house.take_in()
    assert house.watched() == before
    assert CANARY not in caplog.text
    assert house.other.key not in caplog.text + repr([vars(record) for record in caplog.records])


@pytest.mark.parametrize("operation", [operation.name for operation in OPERATIONS])
def test_the_tenant_itself_gets_it(operation: str, house: House) -> None:
    """The same requests do lead there: or else the test above could not fail."""
    for attempt in house.attempts()[operation]:
        if "curious" in (attempt.body or ""):
            continue
        answer = attempt.send(house.owner)
        assert answer.status in {200, 202}
        assert operation == "sendEvents" or CANARY in answer.body.decode()


def test_the_same_ids_are_each_tenants_own(house: House) -> None:
    own = RunRef("curious", WATCHED.run_id)
    house.record(build.started(pipeline="own"), build.step(1, payload="own"), run=own)
    shown = house.other.get(RUN)
    assert shown.json["run"]["pipeline"] == "own"
    assert house.other.get(f"{CALL}/payload").json["payload"] == "own"
    assert [run["pipeline"] for run in house.other.get("/pipeline-runs").json["runs"]] == ["own"]
    assert house.owner.get(RUN).json["run"]["pipeline"] == CANARY
    assert house.owner.get(f"{CALL}/payload").json["payload"] == {CANARY: CANARY}


ALIKE = [RunRef("a", "b.c"), RunRef("a.b", "c"), RunRef("a.b", "b.c"), RunRef("a", "b"),
         RunRef("a-b", "c"), RunRef("a", "b-c"), RunRef("a", "b:c"), RunRef("a", "b:1"),
         RunRef("A", "b.c"), RunRef("a_b", "c"), RunRef("a", "a")]  # fmt: skip


def test_ids_that_read_alike_when_they_are_joined_stay_apart(stage: MemoryStage) -> None:
    for run in ALIKE:
        start = build.started(pipeline="/".join(run))
        assert stage.ingest(build.body(start, build.step(1), run=run, buckets=2)) == []
    stage.drain()
    stage.dynamodb.settle()
    for tenant_id in {run.tenant_id for run in ALIKE}:
        client = HttpClient(stage, issue_key(stage, tenant_id))
        own = {run.run_id for run in ALIKE if run.tenant_id == tenant_id}
        assert {run["run_id"] for run in client.get("/pipeline-runs").json["runs"]} == own
        for run_id in {run.run_id for run in ALIKE}:
            answer = client.get(f"/pipeline-runs/{run_id}")
            assert answer.status == (200 if run_id in own else 404)
            if run_id in own:
                assert answer.json["run"]["pipeline"] == f"{tenant_id}/{run_id}"
