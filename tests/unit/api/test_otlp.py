"""The OTLP routes: spans of any exporter go to the ordinary queue, and nothing of them is lost."""

import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from functions.core.keys import RunRef
from runtally.otel import messages
from tests import build, otlp
from tests.api import Answer, HttpClient, request_event
from tests.fakes.calls import client_error
from tests.memory_stage import EVENTS, MemoryStage
from tests.otlp import JSON, PROTOBUF, TRACE, as_json, as_protobuf, span, traces

RUN = RunRef("acme", TRACE)
ENCODINGS = pytest.mark.parametrize(
    ("headers", "encode"),
    [
        (PROTOBUF, as_protobuf),
        (JSON, lambda request: as_json(request).decode()),
        (JSON, as_json),
        (PROTOBUF, lambda request: gzip.compress(as_protobuf(request))),
        ({**JSON, "Content-Encoding": "gzip"}, lambda request: gzip.compress(as_json(request))),
    ],
    ids=["protobuf", "json", "json-as-base64", "protobuf-gzip", "json-gzip"],
)


def post(
    client: HttpClient,
    body: bytes | str,
    headers: Mapping[str, str] = PROTOBUF,
    path: str = "/v1/traces",
) -> Answer:
    sent = {"Authorization": f"Bearer {client.key}", **headers}
    return client.answer(request_event("POST", path, headers=sent, body=body))


def settle(stage: MemoryStage) -> None:
    """Let ingest take what was sent, claims too, and summarize what came of it."""
    queued = stage.sqs.queues.get(EVENTS, [])
    stage.ingest(*(message.body for message in queued))
    queued.clear()
    stage.drain()


def three_spans() -> dict[str, Any]:
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 50,
        "operation.cost": 0.0125,
        "gen_ai.input.messages": '[{"role": "user", "content": "你好 🌍", "n": 9007199254740993}]',
    }
    return traces(
        span(2, 1, name="chat gpt-5-mini", kind=3, attributes=model),
        span(3, 1, name="lookup", attributes={"gen_ai.tool.name": "lookup"}, status={"code": 2}),
        span(1, name="research", attributes={"gen_ai.workflow.name": "research"}),
    )


@ENCODINGS
def test_a_trace_becomes_a_run(
    stage: MemoryStage,
    client: HttpClient,
    headers: Mapping[str, str],
    encode: Callable[[Any], bytes | str],
) -> None:
    answer = post(client, encode(three_spans()), headers)
    assert (answer.status, answer.headers["content-type"]) == (200, headers["Content-Type"])
    assert answer.body == (b"{}" if headers["Content-Type"].endswith("json") else b"")
    settle(stage)
    run = client.get(f"/pipeline-runs/{TRACE}").json
    assert (run["run"]["pipeline"], run["run"]["status"]) == ("research", "succeeded")
    assert run["totals"]["agents_total"] == 3
    assert run["totals"]["failed_total"] == 1
    assert run["totals"]["cost_usd_total"] == "0.0125"
    assert run["totals"]["input_tokens"] == 1000
    assert [call["kind"] for call in run["calls"]] == ["span", "model", "tool"]
    model = run["calls"][1]
    assert run["calls"][0]["step_id"].endswith(model["parent_id"])
    payload = client.get(f"/pipeline-runs/{TRACE}/calls/{model['step_id']}/payload")
    assert b'"input":[{"role":"user","content":"' in payload.body
    assert b"9007199254740993" in payload.body


def test_every_encoding_gives_the_same_messages(stage: MemoryStage, client: HttpClient) -> None:
    """F41: retried, gzipped or not, protobuf or JSON: one step a span, byte for byte the same."""
    for encode in (as_protobuf, as_json):
        for squeeze in (bytes, gzip.compress):
            assert post(client, squeeze(encode(three_spans())), PROTOBUF).status == 200
    bodies = {message.body for message in stage.sqs.queues[EVENTS]}
    assert len(bodies) == 1
    settle(stage)
    assert client.get(f"/pipeline-runs/{TRACE}").json["totals"]["agents_total"] == 3


def test_spans_cut_into_other_requests_are_the_same_steps(
    stage: MemoryStage, client: HttpClient
) -> None:
    (scope,) = three_spans()["resourceSpans"][0]["scopeSpans"]
    first, second, root = scope["spans"]
    for request in ([first, second], [root], [second, root], [first]):
        assert post(client, as_protobuf(traces(*request))).status == 200
        settle(stage)
    run = client.get(f"/pipeline-runs/{TRACE}").json
    assert (run["totals"]["agents_total"], run["totals"]["cost_usd_total"]) == (3, "0.0125")
    assert stage.sqs.queues.get("memory://dead-letters", []) == []


def test_one_bad_span_of_ten_costs_the_others_nothing(
    stage: MemoryStage, client: HttpClient
) -> None:
    """F41: and a retry changes nothing."""
    spans = [span(n, 1 if n > 1 else None) for n in range(1, 11)]
    spans[4]["traceId"] = "00" * 16
    for _ in range(2):
        answer = post(client, as_protobuf(traces(*spans)))
        assert answer.status == 200
        told = ExportTraceServiceResponse.FromString(answer.body).partial_success
        assert told.rejected_spans == 1
        assert told.error_message == "1 x [4] traceId: not a valid id (invalid_field)"
        settle(stage)
    assert client.get(f"/pipeline-runs/{TRACE}").json["totals"]["agents_total"] == 9


def test_a_span_that_is_no_span_is_told_by_its_place_in_json(client: HttpClient) -> None:
    spans = [span(1), span(2, 1, startTimeUnixNano="soon"), span(3, 1, attributes="none")]
    spans[2]["attributes"] = {"key": "no list"}
    answer = post(client, as_json(traces(*spans)), JSON)
    told = answer.json["partialSuccess"]
    assert told["rejectedSpans"] == "2"
    assert told["errorMessage"] == (
        "1 x [1] `startTimeUnixNano` is no integer (invalid_field);"
        " 1 x [2] `attributes` is no list (invalid_field)"
    )


def test_spans_older_than_the_retention_are_refused_with_the_reason(
    stage: MemoryStage, client: HttpClient
) -> None:
    old = span(1, startTimeUnixNano="1000000000000000000", endTimeUnixNano="1000000000000000001")
    answer = post(client, as_json(traces(old, span(2, 1))), JSON)
    assert answer.json["partialSuccess"]["rejectedSpans"] == "1"
    assert "older than the retention of 365 days" in answer.json["partialSuccess"]["errorMessage"]


@pytest.mark.parametrize("headers", [JSON, PROTOBUF])
@pytest.mark.parametrize("fault", ["throttled", "partly"])
def test_what_the_queue_refuses_is_to_be_sent_again(
    stage: MemoryStage, client: HttpClient, headers: Mapping[str, str], fault: str
) -> None:
    """Never 200, never 500, which exporters answer by dropping the spans."""
    calls = 0

    def fail(call: str, when: str) -> None:
        nonlocal calls
        calls += call == "sqs.send_message" and when == "before"
        if call == "sqs.send_message" and (fault == "throttled" or calls == 2):
            raise client_error(call, "RequestThrottled")

    stage.calls.hook = fail
    big = [span(n, attributes={"input.value": "x" * 200_000}) for n in range(1, 20)]
    answer = post(client, as_json(traces(*big)), headers)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    stage.calls.hook = lambda call, when: None
    assert post(client, as_json(traces(*big)), headers).status == 200
    settle(stage)
    assert client.get(f"/pipeline-runs/{TRACE}").json["totals"]["agents_total"] == 19


def test_a_fault_of_our_own_is_a_503_too(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "read", lambda signal, body, as_json: 1 // 0)
    answer = post(client, b"", JSON)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert answer.json["code"] == 13
    assert "ZeroDivision" not in answer.json["message"]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{", 400, "truncated"),
        (b"[]", 400, "object"),
        (b"\x0a\xff", 400, "malformed"),
        (as_json(traces(*[{}] * 20_001)), 413, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
        (b"\x1f\x8b\x08rubbish", 400, "gzip"),
        ("\x1f\ufffd\x08\x00", 400, "use http/protobuf"),
        (b"x" * 6_000_000, 413, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
        (gzip.compress(b"{" + b" " * (64 * 1024 * 1024)), 413, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
    ],
    ids=["json", "array", "protobuf", "spans", "gzip", "spoiled", "6 MB", "bomb"],
)
def test_what_is_no_request_is_refused_in_the_format_that_was_asked_for(
    client: HttpClient, body: bytes | str, status: int, told: str
) -> None:
    answer = post(client, body, JSON)
    assert answer.status == status
    assert set(answer.json) == {"code", "message"}
    assert told in answer.json["message"]


def test_what_protobuf_cannot_be_is_told_in_protobuf(client: HttpClient) -> None:
    answer = post(client, b"\x0a\xff")
    assert (answer.status, answer.headers["content-type"]) == (400, "application/x-protobuf")
    assert answer.body.startswith(b"\x08\x03\x12")  # INVALID_ARGUMENT, and a message
    assert b"TracesData" in answer.body
    answer = post(client, b"\x28\xb5\x2f\xfd", {**PROTOBUF, "Content-Encoding": "zstd"})
    assert answer.status == 400
    assert b"Content-Encoding: use gzip" in answer.body


@pytest.mark.parametrize("start", [b"", b"\n", b"\xef\xbb\xbf", b" \r\n"])
def test_what_is_said_to_be_json_may_begin_as_json_may(client: HttpClient, start: bytes) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert post(client, start + as_json(traces(span(1))), headers).body == b"{}"


def test_a_refusal_stays_short_whatever_is_refused(client: HttpClient) -> None:
    nothing = {"resourceSpans": [{"scopeSpans": [{"spans": [None] * 16_000}]}]}
    told = post(client, as_json(nothing), JSON).json["partialSuccess"]
    assert told["rejectedSpans"] == "16000"
    assert told["errorMessage"].startswith("16000 x [0] ")
    long = span(1, attributes=[{"key": "x", "value": {"doubleValue": "x" * 1_000_000}}])
    told = post(client, gzip.compress(as_json(traces(long))), JSON).json["partialSuccess"]
    assert len(told["errorMessage"]) < 300


def test_many_small_runs_are_sent_several_at_a_time(stage: MemoryStage, client: HttpClient) -> None:
    spans = [span(n, traceId=f"{n:032x}") for n in range(1, 201)]
    assert post(client, as_protobuf(traces(*spans))).status == 200
    assert len(stage.sqs.queues[EVENTS]) == 200
    settle(stage)
    assert len(client.get("/pipeline-runs", limit="100").json["runs"]) == 100


def test_a_key_is_needed_and_decides_the_tenant(
    stage: MemoryStage, client: HttpClient, key_of: Callable[[str], str]
) -> None:
    event = request_event("POST", "/v1/traces", headers=PROTOBUF, body=as_protobuf(traces(span(1))))
    assert client.answer(event).status == 401
    assert stage.sqs.queues.get(EVENTS, []) == []
    other = HttpClient(stage, key_of("other"))
    assert post(other, as_protobuf(traces(span(1)))).status == 200
    settle(stage)
    assert client.get(f"/pipeline-runs/{TRACE}").status == 404
    assert other.get(f"/pipeline-runs/{TRACE}").status == 200


def test_a_request_of_2_4_mb_and_a_step_over_the_limit_of_the_queue(
    stage: MemoryStage, client: HttpClient
) -> None:
    """Messages of the queue's size, and what is larger by way of the bucket."""
    spans = [span(n, 1, attributes={"output.value": "行" * 133_000}) for n in range(2, 4)]
    spans += [span(1, attributes={"output.value": "y" * 1_600_000})]
    body = as_protobuf(traces(*spans))
    assert 2_300_000 < len(body) < 2_500_000
    assert post(client, body).status == 200
    assert any(key.startswith("inbox/acme/") for key in stage.s3.objects)
    settle(stage)
    run = client.get(f"/pipeline-runs/{TRACE}").json
    assert [call["payload_bytes"] > 399_000 for call in run["calls"]] == [True] * 3
    assert run["calls"][0]["payload_bytes"] > 1_600_000


def test_an_event_of_claude_code_is_a_step_with_its_cost(
    stage: MemoryStage, client: HttpClient
) -> None:
    """Its cost is told nowhere else; cached tokens are counted beside the input."""
    request = {
        "timeUnixNano": str(build.T0 + 3 * build.SECOND),
        "body": {"stringValue": "claude_code.api_request"},
        "attributes": otlp.attributes(
            {
                "event.name": "api_request",
                "session.id": "s-1",
                "model": "claude-opus-5",
                "cost_usd": "0.0523",
                "input_tokens": "2",
                "output_tokens": "90",
                "cache_read_tokens": "84562",
                "cache_creation_tokens": "100",
                "duration_ms": "1500",
            }
        ),
    }
    prompt = {
        "timeUnixNano": str(build.T0 + 1 * build.SECOND),
        "body": {"stringValue": "claude_code.user_prompt"},
        "attributes": otlp.attributes({"session.id": "s-1", "prompt": "你好"}),
    }
    other = {
        "timeUnixNano": str(build.T0 + 1 * build.SECOND),
        "body": {"stringValue": "GET /index.html"},
    }
    body = as_protobuf(otlp.logs(request, prompt, other))
    for _ in range(2):
        answer = post(client, body, PROTOBUF, "/v1/logs")
        told = ExportLogsServiceResponse.FromString(answer.body).partial_success
        assert (answer.status, told.rejected_log_records) == (200, 1)
        assert "only events of model calls" in told.error_message
        settle(stage)
    run = client.get("/pipeline-runs/s-1").json
    assert (run["run"]["pipeline"], run["run"]["status"]) == ("claude-code", "running")
    assert run["totals"]["agents_total"] == 2
    assert run["totals"]["cost_usd_total"] == "0.0523"
    assert run["totals"]["input_tokens"] == 84_664
    assert run["totals"]["cached_tokens"] == 84_562
    model = next(call for call in run["calls"] if call["kind"] == "model")
    assert (model["duration_ms"], model["session_id"]) == (1500.0, "s-1")


def test_an_event_beside_a_span_adds_its_content_and_counts_nothing(
    stage: MemoryStage, client: HttpClient
) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.input.messages": [{"role": "user"}],
    }
    record = {
        "timeUnixNano": str(build.T0 + 2 * build.SECOND),
        "eventName": "gen_ai.client.inference.operation.details",
        "traceId": TRACE,
        "spanId": f"{1:016x}",
        "attributes": otlp.attributes(attributes),
    }
    assert post(client, as_json(otlp.logs(record)), JSON, "/v1/logs").body == b"{}"
    assert post(client, as_protobuf(traces(span(1)))).status == 200
    settle(stage)
    run = client.get(f"/pipeline-runs/{TRACE}").json
    assert [call["kind"] for call in run["calls"]] == ["span", "event"]
    assert run["totals"]["input_tokens"] == 0
    assert run["calls"][0]["step_id"].endswith(run["calls"][1]["parent_id"])
    step_id = run["calls"][1]["step_id"]
    payload = client.get(f"/pipeline-runs/{TRACE}/calls/{step_id}/payload").json
    assert payload["payload"]["input"] == [{"role": "user"}]


def test_another_method_is_told_which_one_to_use(client: HttpClient) -> None:
    answer = client.answer(request_event("GET", "/v1/traces"))
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert json.loads(answer.body)["reason"] == "method_not_allowed"
