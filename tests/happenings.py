"""A stage to which everything happens that functions tell of, once: for tests of what they tell.

Runs, requests and answers carry SECRET wherever a tenant may put text that must not be told.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from functions.adapters.telemetry import Defect
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.times import SECOND
from functions.core.turns import TURN_NS
from functions.summarize import recount_handler
from runtally import wire
from tests import build
from tests.api import HttpClient, issue_key, manage_tenants, request_event
from tests.build import RUN
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.fakes.sqs import Sent
from tests.memory_stage import ERASURES, SWEPT_EVERY_S, MemoryStage

SECRET: Final = "CANARY-QUILL"
_OPEN: Final = RunRef("acme", "run-left-open")
_GOING_ON: Final = RunRef("acme", "run-that-goes-on")
_DELETED: Final = RunRef("acme", "run-to-delete")


def secret_step(n: int, **fields: Any) -> wire.Step:
    given: dict[str, Any] = {
        "name": SECRET,
        "agent": SECRET,
        "error": SECRET,
        "session_id": SECRET,
        "attributes": {SECRET: SECRET},
        "payload": {SECRET: [SECRET]},
        **fields,
    }
    return build.step(n, **given)


def everything(stage: MemoryStage) -> None:
    """All of it, in an order in which it can happen."""
    record(stage)
    lose_and_recount(stage)
    call_the_api(stage)
    call_a_service(stage)
    delete_and_sweep(stage)
    fail_everywhere(stage)


def record(stage: MemoryStage) -> None:
    """Steps with and without phases, again, with other bodies, too old, and no messages at all."""
    started = build.started(attributes={SECRET: SECRET}, session_id=SECRET)
    steps = [
        secret_step(1, phase="plan"),
        secret_step(2, parent_id=build.step_id(1), status="failed"),
        secret_step(3, phase="check", status="failed", cost_usd="0.25"),
        # Of no phase: its own would be the name.
        secret_step(4),
        secret_step(5, parent_id=build.step_id(4), status="failed"),
    ]
    stage.ingest(build.body(started, *steps, build.log(1, SECRET)))
    stage.ingest(build.body(steps[0], secret_step(2, name="other")))
    stage.ingest(SECRET, f'{{"v":1,"{SECRET}":', *map(json.dumps, _refused()))
    stage.ingest(build.body(secret_step(6, started_at=0, ended_at=1)))
    stage.ingest(build.body(build.ended(status="failed", error=SECRET, result=SECRET)))
    records = stage.new_stream_records()
    stage.summarize(records)
    stage.summarize(records)
    stage.drain()


def lose_and_recount(stage: MemoryStage) -> None:
    """Stream batches that were given up, and late steps that ask for a recount."""
    late = RunRef("acme", "run-with-losses")
    stage.ingest(build.body(secret_step(1), secret_step(2), build.ended(), run=late))
    stage.summarize(stage.new_stream_records()[-1:])
    stage.ingest(build.body(secret_step(3), run=late))
    stage.drain()
    name = "aws/lambda/1f2e/shardId-00000001-a1b2/2026/11/29/2026-11-29T12.00.00-77aa"
    stage.failed_batches.objects[name] = json.dumps(event("recount/failed-batch-object")).encode()
    deliver_to_recount(stage, *(r["body"] for r in event("recount/failed-batch")["Records"]))
    stage.events.refuses = lambda detail: True
    refused = RunRef("acme", "run-refused")
    stage.ingest(build.body(secret_step(1), build.ended(), run=refused))
    stage.summarize(stage.new_stream_records())
    stage.recount()
    stage.events.refuses = lambda detail: False
    stage.drain()


def call_the_api(stage: MemoryStage) -> None:
    """Requests that succeed, are refused, and meet a fault; OTLP, too."""
    client = HttpClient(stage, issue_key(stage, RUN.tenant_id))
    client.get("/pipeline-runs")
    client.get(f"/pipeline-runs/{RUN.run_id}")
    client.get(f"/pipeline-runs/{SECRET}")
    client.get("/pipeline-runs", cursor=SECRET)
    client.send("POST", "/events", body=SECRET)
    client.send("POST", "/events", body=build.body(secret_step(7)))
    HttpClient(stage, f"rt_{SECRET}").get("/pipeline-runs")
    for body in (SECRET, _spans()):
        headers = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}
        client.answer(request_event("POST", "/v1/traces", headers=headers, body=body))


def call_a_service(stage: MemoryStage) -> None:
    """Invocations that are answered, answered twice, and given up."""
    answered = stage.invoke(input=SECRET).invocation_id
    stage.ingest(build.answer_body(build.answer(answered, SECRET)))
    stage.ingest(build.answer_body(build.answer(answered, f"{SECRET}, again")))
    stage.invoke(input=SECRET)
    stage.dead_jobs(*stage.jobs(), SECRET)
    for job in map(json.loads, stage.jobs()):
        stage.ingest(build.answer_body(build.answer(job["invocation_id"], error=SECRET)))


def delete_and_sweep(stage: MemoryStage) -> None:
    """A run that falls silent and goes on, one that is deleted, with an event after that, and one
    that is past its tenant's retention."""
    stage.ingest(build.body(build.started(), secret_step(1), run=_GOING_ON))
    stage.pass_time(2 * 3_600)
    stage.calls.hook = partial(_go_on_when_told, stage)
    stage.sweep()
    stage.ingest(build.body(build.started(), secret_step(1), run=_OPEN))
    delete(stage, _DELETED)
    stage.ingest(build.body(secret_step(2), run=_DELETED))
    stage.pass_time(2 * 3_600)
    stage.events.refuses = lambda detail: True
    stage.sweep()
    stage.events.refuses = lambda detail: False
    stage.calls.hook = _only("dynamodb.update_item")
    stage.sweep()
    stage.calls.hook = lambda call, when: None
    stage.sweep()
    stage.sweep(left_ms=0)
    _sweep_for_a_turn(stage)
    stage.erase_all()
    stage.sqs.send_message(QueueUrl=ERASURES, MessageBody=_request(_OPEN))
    stage.erase_all()
    stage.drain()
    short = RunRef("initech", "run-past-retention")
    issue_key(stage, short.tenant_id)
    manage_tenants(stage).set_retention(short.tenant_id, 1, 365)
    stage.ingest(build.body(build.started(), secret_step(1), build.ended(), run=short))
    stage.summarize(stage.new_stream_records())
    stage.pass_time(2 * 24 * 3_600)
    _sweep_for_a_turn(stage)
    stage.erase_all()


def _go_on_when_told(stage: MemoryStage, call: str, when: str) -> None:
    """Between the news that a run is stale and its mark, which ingest then does not see."""
    if (call, when) == ("events.put_events", "after"):
        stage.calls.hook = lambda call, when: None
        ended_at = stage.now_ns + 4 * 3_600 * SECOND  # by a clock that is ahead
        step = secret_step(2, started_at=stage.now_ns, ended_at=ended_at)
        stage.ingest(build.body(step, run=_GOING_ON))


def _sweep_for_a_turn(stage: MemoryStage) -> None:
    """Until whoever is looked at once in a while has been."""
    for _ in range(TURN_NS // (SWEPT_EVERY_S * SECOND) + 1):
        stage.pass_time(SWEPT_EVERY_S)
        stage.sweep()


def delete(stage: MemoryStage, run: RunRef) -> None:
    """Ask for the deletion of a run that is there."""
    stage.ingest(build.body(build.started(), secret_step(1), run=run))
    stage.drain()
    client = HttpClient(stage, issue_key(stage, run.tenant_id))
    assert client.send("DELETE", f"/pipeline-runs/{run.run_id}").status == 202


def fail_everywhere(stage: MemoryStage) -> None:
    """Every function, while every request to AWS fails, and on input that nobody expects."""
    body = build.body(secret_step(20), build.ended(error=SECRET), run=RunRef("acme", "run-failed"))
    stage.ingest(body)
    records = stage.new_stream_records()
    invocation = stage.invoke(input=SECRET)
    client = HttpClient(stage, issue_key(stage, "globex"))
    for failure in _failures():
        stage.calls.hook = failure
        stage.ingest(body, build.answer_body(build.answer(invocation.invocation_id, SECRET)))
        survive(lambda: stage.summarize(records))
        deliver_to_recount(stage, _request(RUN), SECRET, json.dumps({SECRET: SECRET}))
        stage.dead_jobs(*stage.jobs())
        client.get("/pipeline-runs")
        client.send("POST", "/events", body=build.body(secret_step(8)))
        survive(stage.sweep)
        stage.sqs.queues[ERASURES] = [Sent("m-1", _request(_OPEN))]
        stage.erase()
    stage.calls.hook = lambda call, when: None
    stage.sqs.queues[ERASURES] = [Sent("m-2", SECRET)]
    stage.erase()
    stage.sqs.queues[ERASURES] = []
    unreadable = {
        **records[0]["dynamodb"],
        "NewImage": {**records[0]["dynamodb"]["NewImage"], "started_at": {"S": SECRET}},
    }
    stage.summarize([{**records[0], "dynamodb": unreadable}, *records])


def deliver_to_recount(stage: MemoryStage, *bodies: str) -> None:
    records = [{"messageId": f"m-{n}", "body": body} for n, body in enumerate(bodies)]
    recount_handler.process({"Records": records}, stage.recount_parts)


def survive(work: Callable[[], object]) -> None:
    """What a function raises, Lambda logs."""
    try:
        work()
    except (Unavailable, Defect) as error:
        print(json.dumps({"errorType": type(error).__name__, "errorMessage": str(error)}))


def _request(run: RunRef) -> str:
    return json.dumps({**run._asdict(), "agents_total": None})


def _refused() -> list[dict[str, Any]]:
    head = {"v": 1, **RUN._asdict()}
    step = {"type": "step", "step_id": build.step_id(9), "kind": "model", "status": "succeeded"}
    times = {"started_at": build.T0, "ended_at": build.T0}
    return [
        {**head, "events": [{**step, **times, "cost_usd": SECRET}]},
        {**head, "events": [{**step, **times, "status": SECRET}]},
        {**head, "events": [{**step, "started_at": SECRET}]},
        {**head, "events": [{"type": SECRET}]},
        {**head, "v": SECRET},
        {"v": 1, **RUN._asdict(), "claim": {"key": SECRET, "sha256": SECRET, "bytes": 1}},
        {**head, "tenant_id": f"{SECRET} {SECRET}"},
    ]


def _spans() -> str:
    text = {"stringValue": SECRET}
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": SECRET,
        "startTimeUnixNano": str(build.T0),
        "endTimeUnixNano": str(build.T0 + 1),
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            {"key": "gen_ai.usage.input_tokens", "value": text},
            {"key": "gen_ai.input.messages", "value": text},
            {"key": SECRET, "value": text},
        ],
        "events": [{"name": SECRET, "attributes": [{"key": SECRET, "value": text}]}],
        "status": {"code": 2, "message": SECRET},
    }
    scope = {"scope": {"name": SECRET}, "spans": [span, {"name": SECRET, "spanId": SECRET}]}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "agents"}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _only(failing: str) -> Callable[[str, str], None]:
    def down(call: str, when: str) -> None:
        if (call, when) == (failing, "before"):
            raise client_error(call, "ServiceUnavailable")

    return down


def _failures() -> list[Callable[[str, str], None]]:
    def down(call: str, when: str) -> None:
        raise client_error(call, "ThrottlingException")

    def broken(call: str, when: str) -> None:
        raise RuntimeError(f"unexpected, in {call}: {SECRET}")

    return [down, broken]
