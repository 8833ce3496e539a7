"""Events over HTTP: what is good goes to the ordinary queue, what is not is named at once."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from functions.core.keys import RunRef
from runtally import wire
from tests import build
from tests.api import HttpClient
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.memory_stage import EVENTS, MemoryStage


def sent(stage: MemoryStage) -> list[str]:
    return [message.body for message in stage.sqs.queues.get(EVENTS, [])]


def body_with(**changes: Any) -> str:
    return json.dumps({**json.loads(build.body(build.started(), build.step(1))), **changes})


def test_what_is_accepted_is_recorded_like_any_other(
    stage: MemoryStage, client: HttpClient
) -> None:
    body = build.body(build.started(), build.step(1, payload={"你": "好"}), build.ended())
    answer = client.send("POST", "/events", body=body)
    assert (answer.status, answer.json) == (202, {"accepted": 3, "refused_total": 0, "refused": []})
    assert sent(stage) == [body]
    assert stage.sqs.queues[EVENTS][0].group == "acme"
    stage.ingest(*sent(stage))
    stage.drain()
    assert client.get("/pipeline-runs/run-1").json["totals"]["agents_total"] == 1


@pytest.mark.parametrize("as_bytes", [str.encode, lambda body: gzip.compress(body.encode())])
def test_a_binary_or_gzipped_body_is_the_same(
    stage: MemoryStage, client: HttpClient, as_bytes: Callable[[str], bytes]
) -> None:
    body = build.body(build.step(1))
    assert client.send("POST", "/events", body=as_bytes(body)).status == 202
    assert sent(stage) == [body]


def test_sending_again_sends_the_same_bytes(stage: MemoryStage, client: HttpClient) -> None:
    spaced = json.dumps(json.loads(build.body(build.step(1), build.step(2))), indent=1)
    for _ in range(2):
        assert client.send("POST", "/events", body=spaced).status == 202
    first, second = sent(stage)
    assert first == second
    stage.ingest(first)
    before = dict(stage.dynamodb.items)
    stage.ingest(second)
    assert stage.dynamodb.items == before


def test_the_bad_events_of_a_body_are_named_and_the_good_ones_go_on(
    stage: MemoryStage, client: HttpClient
) -> None:
    body = build.body(build.step(1), build.step(2), build.step(3, name="fine"))
    body = body.replace(build.step_id(2), "not an id")
    answer = client.send("POST", "/events", body=body)
    assert answer.status == 202
    assert (answer.json["accepted"], answer.json["refused_total"]) == (2, 1)
    (refused,) = answer.json["refused"]
    assert (refused["field"], refused["reason"]) == ("events[1].step_id", "invalid_field")
    assert stage.ingest(*sent(stage)) == []
    assert stage.dead_letters() == []
    assert len(stage.items_of(RUN, "AGENT#")) == 2


@pytest.mark.parametrize(
    ("body", "answered"),
    [
        ("", (400, None, "not_json")),
        ("{", (400, None, "not_json")),
        (b"\xff\xfe", (400, None, "not_json")),
        (body_with(v=2), (400, "v", "unknown_version")),
        (body_with(tenant_id="a b"), (400, "tenant_id", "invalid_field")),
        (body_with(tenant_id="globex"), (403, "tenant_id", "other_tenant")),
        (body_with(run_id="a/b"), (400, "run_id", "invalid_field")),
        (body_with(run_id=None), (400, "run_id", "invalid_field")),
        (body_with(buckets=65), (400, "buckets", "invalid_field")),
        (body_with(events=[]), (400, "events", "invalid_field")),
        (body_with(events=[{"type": "step"}]), (400, "events[0].step_id", "invalid_field")),
        (body_with(events=[{"type": "stop"}]), (400, "events[0].type", "unknown_type")),
        (
            body_with(events=[{"type": "run.ended", "at": 5, "status": "failed"}]),
            (400, "events[0].at", "too_old"),
        ),
        (
            body_with(
                events=[{"type": "invocation.ended", "invocation_id": "i", "status": "failed"}]
            ),
            (400, "run_id", "invalid_field"),
        ),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_sent(
    stage: MemoryStage,
    client: HttpClient,
    body: str | bytes,
    answered: tuple[int, str | None, str],
) -> None:
    answer = client.send("POST", "/events", body=body)
    assert (answer.status, answer.json.get("field"), answer.json["reason"]) == answered
    assert sent(stage) == []


def test_a_claim_is_refused(stage: MemoryStage, client: HttpClient) -> None:
    claim = {"key": f"inbox/acme/run-1/{'0' * 64}", "sha256": "0" * 64, "bytes": 5}
    body = json.dumps({"v": 1, "tenant_id": "acme", "run_id": "run-1", "claim": claim})
    answer = client.send("POST", "/events", body=body)
    assert (answer.status, answer.json["field"]) == (400, "claim")
    assert sent(stage) == []


def test_a_body_over_one_mebibyte_is_refused_before_and_after_inflating(
    stage: MemoryStage, client: HttpClient
) -> None:
    body = build.body(build.step(1, payload="x" * wire.SQS_LIMIT_BYTES))
    for sent_body in (body, gzip.compress(body.encode()), gzip.compress(b"0" * 200_000_000)):
        assert client.send("POST", "/events", body=sent_body).status == 413
    assert sent(stage) == []


def test_a_damaged_gzip_body_is_no_fault_of_ours(client: HttpClient) -> None:
    body = gzip.compress(build.body(build.step(1)).encode())
    answer = client.send("POST", "/events", body=body[:-9])
    assert (answer.status, answer.json["reason"]) == (400, "not_json")


def test_an_answer_to_an_invocation_may_come_over_http(
    stage: MemoryStage, client: HttpClient
) -> None:
    event = wire.InvocationEnded(invocation_id="i-1", status="succeeded", result="done")
    head = wire.Head(v=1, tenant_id="acme")
    body = wire.seal(head, [wire.encode_event(event)])
    assert client.send("POST", "/events", body=body.decode()).status == 202
    assert sent(stage) == [body.decode()]


def test_when_the_queue_does_not_answer_nothing_was_accepted(
    stage: MemoryStage, client: HttpClient
) -> None:
    def fail(call: str, when: str) -> None:
        if call == "sqs.send_message" and when == "before":
            raise client_error("SendMessage", "RequestThrottled")

    stage.calls.hook = fail
    answer = client.send("POST", "/events", body=build.body(build.step(1)))
    assert answer.status == 503
    assert answer.headers["retry-after"] == "2"
    stage.calls.hook = lambda call, when: None
    assert client.send("POST", "/events", body=build.body(build.step(1))).status == 202


def test_a_tenant_records_its_own_runs_alone(
    stage: MemoryStage, key_of: Callable[[str], str]
) -> None:
    other = HttpClient(stage, key_of("globex"))
    assert other.send("POST", "/events", body=build.body(build.step(1))).status == 403
    own = build.body(build.step(1), run=RunRef("globex", "run-1"))
    assert other.send("POST", "/events", body=own).status == 202


def test_however_much_is_refused_the_answer_stays_small(
    stage: MemoryStage, client: HttpClient
) -> None:
    good = json.loads(build.body(build.step(1)))["events"]
    answer = client.send("POST", "/events", body=body_with(events=good + [0] * 9_999))
    assert (answer.status, answer.json["accepted"]) == (202, 1)
    assert (answer.json["refused_total"], len(answer.json["refused"])) == (9_999, 100)
    assert client.send("POST", "/events", body=body_with(events=[0] * 10_001)).status == 413
    assert len(sent(stage)) == 1


def test_what_follows_the_first_gzip_member_is_not_dropped_in_silence(
    stage: MemoryStage, client: HttpClient
) -> None:
    members = gzip.compress(build.body(build.step(1)).encode())
    members += gzip.compress(build.body(build.step(2)).encode())
    answer = client.send("POST", "/events", body=members)
    assert (answer.status, answer.json["reason"]) == (400, "not_json")
    assert sent(stage) == []
