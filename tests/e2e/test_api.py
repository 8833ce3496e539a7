"""The deployed API over HTTP: read back, record, invoke, with policies enforced."""

import gzip
import json
import threading
import urllib.request
from typing import Any

import pytest

from functions.core.keys import RunRef
from local import waiting
from local.stage import Stage
from runtally import JobWorker, wire
from tests import build
from tests.build import SECOND, T0
from tests.e2e.http import DeployedApi, key_of
from tests.e2e.pipeline import WITHIN_S, Pipeline

pytestmark = pytest.mark.xdist_group("guarded stage")


@pytest.fixture(scope="module")
def api(guarded_stage: Stage) -> DeployedApi:
    return DeployedApi(guarded_stage.api_url, key_of(guarded_stage, "acme"))


def test_a_run_is_read_back_over_http(guarded_pipeline: Pipeline, api: DeployedApi) -> None:
    pipeline, run_id = guarded_pipeline, guarded_pipeline.ref.run_id
    payload = {"question": "你好", "n": 9007199254740993}
    steps = [
        build.step(n, phase="act", cost_usd="0.000009", payload={**payload, "step": n})
        for n in range(40)
    ]
    pipeline.send(
        pipeline.body(build.started(), *steps[:20]),
        pipeline.body(*steps[20:], build.log(50, "done"), build.ended(result="你" * 30_000)),
    )
    pipeline.summarised(40)
    shown = api.get(f"/pipeline-runs/{run_id}").json
    assert shown["run"]["status"] == "succeeded"
    assert shown["totals"]["cost_usd_total"] == "0.00036"
    assert [call["step_id"] for call in shown["calls"]] == [step.step_id for step in steps]
    assert shown["result"]["result_truncated"] is True
    assert shown["logs"]["entries"][0]["lines"] == ["done"]
    whole = api.get(f"/pipeline-runs/{run_id}/result").json
    assert whole["result"] == "你" * 30_000
    answer = api.get(f"/pipeline-runs/{run_id}/calls/{steps[7].step_id}/payload")
    assert answer.json["payload"] == {**payload, "step": 7}
    assert b"9007199254740993" in answer.body
    listed = api.get("/pipeline-runs", limit="100").json["runs"]
    assert run_id in [run["run_id"] for run in listed]
    insights = api.get("/insights", view="summary").json
    assert insights["runs"] >= 1
    compared = api.get("/insights", view="compare", a=run_id, b=run_id).json
    assert compared["change"]["calls"] == 0


def test_another_tenant_sees_nothing_of_it(guarded_pipeline: Pipeline, api: DeployedApi) -> None:
    pipeline, run_id = guarded_pipeline, guarded_pipeline.ref.run_id
    pipeline.send(pipeline.body(build.started(), build.step(1, payload="secret"), build.ended()))
    pipeline.summarised(1)
    other = DeployedApi(api.url, key_of(pipeline.stage, "globex"))
    step_id = build.step_id(1)
    for path in ("", f"/calls/{step_id}/payload", f"/calls/{step_id}/event", "/result"):
        assert api.get(f"/pipeline-runs/{run_id}{path}").status == 200
        assert other.get(f"/pipeline-runs/{run_id}{path}").status == 404
    assert other.get("/pipeline-runs").json == {"runs": []}
    wrong = DeployedApi(api.url, "rt_wrong")
    assert wrong.get("/pipeline-runs").status == 401
    assert wrong.get("/openapi.json").json["openapi"] == "3.1.0"


def test_events_sent_over_http_are_recorded(guarded_pipeline: Pipeline, api: DeployedApi) -> None:
    pipeline = guarded_pipeline
    body = pipeline.body(build.started(), build.step(1), build.step(2), build.ended())
    for _ in range(2):
        answer = api.send("POST", "/events", body)
        assert (answer.status, answer.json) == (
            202,
            {"accepted": 4, "refused_total": 0, "refused": []},
        )
    assert pipeline.summarised(2).totals.agents_total == 2


def test_a_payload_too_large_for_an_answer_is_had_by_its_link(
    guarded_pipeline: Pipeline, api: DeployedApi
) -> None:
    pipeline, run_id = guarded_pipeline, guarded_pipeline.ref.run_id
    noise = [f"{(n * 2654435761) % 2**32:08x}{(n * 40503) % 2**16:04x}" for n in range(900_000)]
    step = build.step(1, payload=noise)
    pipeline.send(pipeline.body(build.started(), step, build.ended()))
    pipeline.summarised(1)
    shown = api.get(f"/pipeline-runs/{run_id}/calls/{step.step_id}/payload").json
    assert shown["payload_state"] == "ok"
    link = shown["link"]
    request = urllib.request.Request(link["url"], headers=link["headers"])  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=60) as answered:  # noqa: S310 - as above
        event = json.loads(gzip.decompress(answered.read()))
    assert event["payload"] == noise


def serve(stage: Stage, handler: Any) -> tuple[threading.Thread, threading.Event]:
    """A worker of the service entry `research`, in a thread."""
    stop = threading.Event()
    queue_url = json.loads(stage.service_entry_queue_urls)["research"]
    worker = JobWorker(
        job_queue_url=queue_url,
        queue_url=stage.event_queue_url,
        bucket=stage.bucket_name,
        sqs=stage.client("sqs"),
        s3=stage.client("s3"),
    )
    thread = threading.Thread(target=worker.serve, args=(handler, stop))
    thread.start()
    return thread, stop


def settled(api: DeployedApi, invocation_id: str) -> Any:
    def answer() -> Any:
        shown = api.get(f"/invocations/{invocation_id}").json
        return None if shown["status"] == "pending" else shown

    return waiting.until(answer, WITHIN_S, "The invocation was not answered")


def invoke(api: DeployedApi, **wanted: Any) -> str:
    body = json.dumps(wanted).encode()
    answer = api.send("POST", "/service-entries/research/invocations", body)
    assert answer.status == 202, answer.body
    invocation_id: str = answer.json["invocation_id"]
    return invocation_id


def test_a_worker_answers_an_invocation_and_a_long_result_is_cut_and_linked(
    guarded_stage: Stage, api: DeployedApi
) -> None:
    thread, stop = serve(guarded_stage, lambda job: "你" * job.input["characters"])
    try:
        exact, longer = (invoke(api, input={"characters": n}) for n in (100_000, 100_001))
        shown = settled(api, exact)
        assert (shown["status"], shown["result"]) == ("succeeded", "你" * 100_000)
        assert "result_truncated" not in shown
        shown = settled(api, longer)
        assert shown["status"] == "succeeded"
        assert shown["result_truncated"] is True
        assert (shown["result"], shown["result_bytes"]) == ("你" * 100_000, 300_003)
        with urllib.request.urlopen(shown["result_link"]["url"], timeout=60) as whole:  # noqa: S310
            assert whole.read().decode() == "你" * 100_001
        huge = invoke(api, input={"characters": 500_000})
        assert settled(api, huge)["result_bytes"] == 1_500_000
    finally:
        stop.set()
        thread.join()


def test_what_no_worker_answers_fails_with_its_reason(
    guarded_stage: Stage, api: DeployedApi
) -> None:
    late = invoke(api, input=None, deadline_s=1)
    shown = settled(api, late)
    assert (shown["status"], shown["reason"]) == ("failed", "deadline_passed")
    given_up = invoke(api, input=None)
    queue_url = json.loads(guarded_stage.service_entry_queue_urls)["research"]

    def received_in_vain() -> Any:
        """As a worker that dies with each job does, until the queue gives the job up."""
        guarded_stage.sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        shown = api.get(f"/invocations/{given_up}").json
        return None if shown["status"] == "pending" else shown

    shown = waiting.until(received_in_vain, WITHIN_S, "The job was not given up")
    assert (shown["status"], shown["reason"]) == ("failed", "job_failed")


def test_unknown_things_are_not_found(api: DeployedApi) -> None:
    answer = api.send("POST", "/service-entries/nothing/invocations", b'{"input":1}')
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert api.get("/invocations/nothing").status == 404
    assert api.get("/pipeline-runs/nothing").json["reason"] == "not_found"
    assert api.get("/nothing").status == 404


def test_the_answer_of_an_invocation_is_taken_once(
    guarded_pipeline: Pipeline, api: DeployedApi
) -> None:
    invocation_id = invoke(api, input="x", client_token="once")
    assert invoke(api, input="x", client_token="once") == invocation_id
    body = json.dumps({"input": "y", "client_token": "once"}).encode()
    assert api.send("POST", "/service-entries/research/invocations", body).status == 409
    first = wire.InvocationEnded(invocation_id=invocation_id, status="succeeded", result="1")
    head = wire.Head(v=1, tenant_id="acme")
    assert api.send("POST", "/events", wire.seal(head, [wire.encode_event(first)])).status == 202
    assert settled(api, invocation_id)["result"] == "1"


def test_runs_page_by_cursor(guarded_stage: Stage) -> None:
    tenant_id = "paging"
    api = DeployedApi(guarded_stage.api_url, key_of(guarded_stage, tenant_id))
    for n in range(7):
        at = T0 + n * SECOND
        events = (build.started(at=at), build.ended(at=at + SECOND))
        body = build.body(*events, run=RunRef(tenant_id, f"r{n}"))
        assert api.send("POST", "/events", body.encode()).status == 202

    def all_listed() -> bool | None:
        return len(api.get("/pipeline-runs").json["runs"]) == 7 or None

    waiting.until(all_listed, WITHIN_S, "The runs were not listed")
    found: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = api.get("/pipeline-runs", **query).json
        found += [run["run_id"] for run in page["runs"]]
        if "next" not in page:
            break
        query["cursor"] = page["next"]
    assert found == [f"r{n}" for n in range(6, -1, -1)]
    mangled = query["cursor"][:-1] + ("A" if query["cursor"][-1] != "A" else "B")
    assert api.get("/pipeline-runs", limit="3", cursor=mangled).status == 400
