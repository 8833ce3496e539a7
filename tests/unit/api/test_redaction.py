"""A stage that redacts: an address in what the API takes is in no queue, table, bucket, dead letter
or log; with redaction off, bytes are those of before."""

import contextlib
import gzip
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from functions.adapters import settings
from runtally import Recorder, redaction, wire
from runtally.otel.exporter import SpanExporter
from tests import build, otlp
from tests.api import HttpClient, issue_key, request_event
from tests.memory_stage import DEAD_LETTERS, EVENTS, MemoryStage
from tests.otlp import JSON, PROTOBUF, as_json, as_protobuf, span, traces
from tests.telling import heard
from tests.unit.sdk.recording import KeepingSender
from tests.unit.sdk.test_imports import loaded_by
from tests.unit.sdk.test_managed_rules import CARD, EMAIL, KEY, KEYS, chars

ADDRESS = "zora@example.com"
GONE = "[redacted:email]"


@pytest.fixture
def stage() -> MemoryStage:
    return MemoryStage(redact=True)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[io.StringIO]:
    caplog.set_level(logging.DEBUG)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    with contextlib.ExitStack() as end:
        for name in ("runtally", "api"):
            logging.getLogger(name).addHandler(handler)
            end.callback(logging.getLogger(name).removeHandler, handler)
        yield log


def everything_in(stage: MemoryStage) -> str:
    """All that the stage keeps, after what is queued was taken in and summarized."""
    queued = stage.sqs.queues.get(EVENTS, [])
    bodies = "\n".join(message.body for message in queued)
    stage.ingest(*(message.body for message in queued))
    queued.clear()
    stage.drain()
    lines = b"".join(gzip.decompress(content) for content in stage.s3.objects.values())
    items = json.dumps([*stage.dynamodb.items.values()], default=str)
    assert stage.sqs.queues.get(DEAD_LETTERS, []) == []
    assert GONE in bodies
    assert GONE in items
    assert GONE.encode() in lines
    return "\n".join((bodies, lines.decode(), items, json.dumps(str(stage.sqs.queues))))


def nested(value: str) -> dict[str, Any]:
    return {
        value: value,
        "deep": {"list": [{value: value}, 9007199254740993]},
        "json": json.dumps({"to": value}),
    }


def body_with(text: str, **changes: Any) -> str:
    """A run with the text in all places, one that the wire format does not know among them."""
    attributes: Any = {text: text, "list": [text, 1]}
    named = dict.fromkeys(("name", "phase", "agent", "session_id", "model", "provider"), text)
    events = (
        build.started(pipeline=text, attributes=attributes, session_id=text),
        build.step(1, error=text, attributes=attributes, payload=nested(text), **named),
        build.log(2, text, f"to {text}"),
        build.ended(result=text, error=text, status="failed"),
    )
    body = json.loads(build.body(*events)) | changes
    body["events"][1][text] = text
    return json.dumps(body, separators=(",", ":"))


def as_it_is(body: str) -> str:
    return body


def escaped(body: str) -> str:
    return body.replace("@", "\\u0040")


@pytest.mark.parametrize("write", [as_it_is, escaped])
def test_events(stage: MemoryStage, logged: io.StringIO, write: Any) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    body = write(body_with(ADDRESS))
    assert client.send("POST", "/events", body=body).json["accepted"] == 4
    first = stage.sqs.queues[EVENTS][0].body
    assert client.send("POST", "/events", body=body).status == 202
    assert {message.body for message in stage.sqs.queues[EVENTS]} == {first}
    assert "9007199254740993" in first
    assert "zora" not in everything_in(stage) + logged.getvalue()


def test_a_refused_event_leaves_no_trace(stage: MemoryStage, logged: io.StringIO) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    body = json.loads(body_with(ADDRESS))
    body["events"][1]["cost_usd"] = ADDRESS
    answer = client.send("POST", "/events", body=json.dumps(body))
    assert (answer.json["accepted"], answer.json["refused_total"]) == (3, 1)
    bodies = [message.body for message in stage.sqs.queues[EVENTS]]
    assert "zora" not in "".join(bodies) + logged.getvalue()


@pytest.mark.parametrize("name", ["status", "parent_id", "log_id", "kind", "cost_usd"])
def test_fields_of_other_events_are_texts(stage: MemoryStage, name: str) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    body = json.loads(build.body(build.started()))
    body["events"][0][name] = {"x": ADDRESS}
    assert client.send("POST", "/events", body=json.dumps(body)).json["accepted"] == 1
    (message,) = stage.sqs.queues[EVENTS]
    assert "zora" not in message.body
    assert GONE in message.body


def test_what_goes_wrong_is_logged_without_its_words(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str]
) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))

    def fails(call: str, _: str) -> None:
        if call == "sqs.send_message":
            words = f"Project X and {ADDRESS}"
            raise RuntimeError(words)

    stage.calls.hook = fails
    with heard("DEBUG"):
        assert client.send("POST", "/events", body=body_with(ADDRESS)).status == 500
    told = capsys.readouterr().out
    assert '"exception":"RuntimeError\\n' in told
    assert "Project X and" not in told.replace("{ADDRESS}", "").replace("words", "")
    assert "zora" not in told


STARTED = """
import logging, os, sys
from functions.adapters import settings
root = logging.StreamHandler(sys.stdout)  # as Lambda has one
logging.getLogger().addHandler(root)
names = [settings.TABLE, settings.BUCKET, settings.EVENT_QUEUE_URL, settings.ERASURE_QUEUE_URL]
os.environ.update(dict.fromkeys(names, "https://x.example/queue"))
os.environ.update({settings.RETENTION_DAYS: "1", settings.SERVICE_ENTRIES: "{}"})
os.environ.update({"AWS_DEFAULT_REGION": "eu-central-1", **dict.fromkeys(sys.argv[1:], "on")})
from functions.api import handler
handler._http()
from runtally import payloads
class Rude:
    def __getattribute__(self, name):
        raise ValueError("Project " + "X")
payloads.encode(Rude())
logging.getLogger("runtally").warning("Project " + "X")
"""


@pytest.mark.parametrize("switched", [[], [settings.REDACT]], ids=["off", "on"])
def test_what_the_library_logs_in_the_api_is_without_words_too(switched: list[str]) -> None:
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", STARTED, *switched], check=True, capture_output=True, text=True
    )
    (line,) = run.stdout.splitlines()
    told = json.loads(line)
    assert told["message"] == "runtally: a payload of type Rude could not be written"
    assert told["exception"].startswith("ValueError\n")
    assert "Project X" not in run.stdout + run.stderr


def test_names_are_redacted_whole(stage: MemoryStage) -> None:
    """However long they are, and wherever the dots of an address would part them."""
    client = HttpClient(stage, issue_key(stage, "acme"))
    sent = {"Authorization": f"Bearer {client.key}", **JSON}
    long = "x " * 500 + "by someone.called.zora@example.com"
    path = f"llm.input_messages.0.{ADDRESS}"
    attributes = {path: "x", "llm.input_messages.1.zora%40example.com": "x", "langgraph_node": long}
    body = as_json(traces(span(1, name=long), span(2, 1, name=long, attributes=attributes)))
    assert client.answer(request_event("POST", "/v1/traces", headers=sent, body=body)).status == 200
    bodies = "".join(message.body for message in stage.sqs.queues[EVENTS])
    assert "phase_hint" in bodies
    assert "zora" not in bodies


GROUPED = {
    f"POST /bot{KEYS['telegram']}/sendMessage": f"POST /bot{KEY}/sendMessage",
    "xo" + "xb-123456789012-123456789012-" + chars(24): KEY,
    "charge 4111 1111 1111 1111": f"charge {CARD}",
    "mail zora@mail-123456.example.com": f"mail {EMAIL}",
    "s" + "k-abcdEFGHabcd123456789012abcdEFGH": KEY,
    "order 123456 of zora@example.com 7": f"order * of {EMAIL} *",
}
"""Names that hold what is redacted, some of it in digits that go when names are grouped."""


def names_in(bodies: Iterable[str]) -> tuple[set[Any], set[Any]]:
    """Of all runs the pipelines, and of all steps the hints of their phases."""
    opened = [wire.open_message(body) for body in bodies]
    events = [wire.decode_event(line, "") for each in opened for line in each.lines]
    return (
        {event.pipeline for event in events if isinstance(event, wire.RunStarted)},
        {event.phase_hint for event in events if isinstance(event, wire.Step)} - {None},
    )


@pytest.mark.parametrize(("name", "redacted"), GROUPED.items())
def test_names_are_redacted_before_they_are_grouped(
    stage: MemoryStage, name: str, redacted: str
) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    sent = {"Authorization": f"Bearer {client.key}", **JSON}
    node = {"langgraph_node": name}
    body = as_json(traces(span(1, name=name), span(2, 1, attributes=node)))
    assert client.answer(request_event("POST", "/v1/traces", headers=sent, body=body)).status == 200
    record = {
        "timeUnixNano": str(build.T0),
        "traceId": otlp.TRACE,
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": otlp.attributes(node),
    }
    body = as_json(otlp.logs(record))
    assert client.answer(request_event("POST", "/v1/logs", headers=sent, body=body)).status == 200
    spans, records = (message.body for message in stage.sqs.queues[EVENTS])
    assert names_in([spans]) == ({redacted}, {redacted})
    assert names_in([records]) == (set(), {redacted})


@pytest.mark.parametrize(("name", "redacted"), GROUPED.items())
def test_the_exporter_redacts_names_before_they_are_grouped(name: str, redacted: str) -> None:
    sender = KeepingSender()
    recorder = Recorder(tenant_id="acme", sender=sender, redact=redaction.rules())
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(SpanExporter(recorder)))
    with provider.get_tracer("t").start_as_current_span(name, attributes={"langgraph_node": name}):
        pass
    provider.shutdown()
    recorder.close()
    assert names_in(body.decode() for body in sender.bodies) == ({redacted}, {redacted})


def spans_with(text: str) -> dict[str, Any]:
    """A run whose id, which is hashed, is the text; and the text in all places of its spans."""
    attributes = {
        text: text,
        "gen_ai.conversation.id": text,
        "gen_ai.agent.name": text,
        "gen_ai.request.model": text,
        "gen_ai.input.messages": json.dumps([{"role": "user", "content": text}]),
        "gen_ai.output.messages": text,
        "user.id": text,
        "nested": nested(text),
    }
    said = {"attributes": otlp.attributes({text: text}), "timeUnixNano": str(build.T0)}
    wrong = {"exception.type": "E", "exception.message": text}
    return traces(
        span(
            1,
            name=text,
            attributes=attributes | {"runtally.run_id": text},
            events=[
                {"name": text, **said},
                {**said, "name": "exception", "attributes": otlp.attributes(wrong)},
            ],
            links=[{"traceId": "a" * 32, "spanId": "b" * 16, "attributes": said["attributes"]}],
            status={"code": 2, "message": text},
            traceState=f"k={text}",
        ),
        span(2, 1, name=text, status={"code": 2, "message": text}, attributes=attributes),
        resource={"service.name": text, text: text, "runtally.run_id": text},
    )


@pytest.mark.parametrize(
    ("headers", "encode"), [(PROTOBUF, as_protobuf), (JSON, as_json)], ids=["protobuf", "json"]
)
def test_spans(stage: MemoryStage, logged: io.StringIO, headers: Any, encode: Any) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    sent = {"Authorization": f"Bearer {client.key}", **headers}
    event = request_event("POST", "/v1/traces", headers=sent, body=encode(spans_with(ADDRESS)))
    assert client.answer(event).status == 200
    assert client.answer(event).status == 200
    queued = [message.body for message in stage.sqs.queues[EVENTS]]
    assert queued[: len(queued) // 2] == queued[len(queued) // 2 :]
    assert "zora" not in everything_in(stage) + logged.getvalue()


def test_log_records(stage: MemoryStage, logged: io.StringIO) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    record = {
        "timeUnixNano": str(build.T0),
        "eventName": "gen_ai.client.inference.operation.details",
        "body": otlp.value(nested(ADDRESS)),
        "severityText": ADDRESS,
        "attributes": otlp.attributes({ADDRESS: ADDRESS, "session.id": ADDRESS}),
    }
    prompt = {**record, "eventName": "claude_code.user_prompt"}
    body = as_json(otlp.logs(record, prompt, resource={"service.name": ADDRESS}))
    sent = {"Authorization": f"Bearer {client.key}", **JSON}
    assert client.answer(request_event("POST", "/v1/logs", headers=sent, body=body)).status == 200
    assert "zora" not in everything_in(stage) + logged.getvalue()


def test_the_exporter(logged: io.StringIO) -> None:
    sender = KeepingSender()
    recorder = Recorder(tenant_id="acme", sender=sender, redact=redaction.rules())
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(SpanExporter(recorder)))
    tracer = provider.get_tracer(ADDRESS, ADDRESS, attributes={ADDRESS: ADDRESS})
    attributes = {ADDRESS: ADDRESS, "runtally.run_id": ADDRESS, "runtally.cost_usd": ADDRESS}
    with (
        contextlib.suppress(ValueError),
        tracer.start_as_current_span(ADDRESS, attributes=attributes) as recorded,
    ):
        recorded.add_event(ADDRESS, {ADDRESS: ADDRESS})
        raise ValueError(f"no {ADDRESS}")
    provider.shutdown()
    recorder.close()
    sent = b"".join(sender.bodies).decode()
    assert GONE in sent
    assert "zora" not in sent + logged.getvalue()
    assert GONE in logged.getvalue()  # the cost that is none


def test_off_bytes_are_those_of_before(logged: io.StringIO) -> None:
    stage = MemoryStage()
    client = HttpClient(stage, issue_key(stage, "acme"))
    body = body_with(ADDRESS)
    assert client.send("POST", "/events", body=body).json["accepted"] == 4
    assert [message.body for message in stage.sqs.queues[EVENTS]] == [body]


def test_off_nothing_of_it_is_imported() -> None:
    loaded = loaded_by("import functions.api.handler, runtally.otel.messages")
    assert not {m for m in loaded if "redact" in m or "detect_secrets" in m or "managed_rules" in m}


def test_the_job_of_an_invocation_reaches_its_worker_as_it_was_asked_for(
    stage: MemoryStage,
) -> None:
    stage.invoke(input={"to": ADDRESS})
    (job,) = stage.jobs()
    assert json.loads(job)["input"] == {"to": ADDRESS}
    assert ADDRESS not in json.dumps([*stage.dynamodb.items.values()], default=str)
    assert stage.s3.objects == {}


def test_ids_are_no_texts(stage: MemoryStage) -> None:
    client = HttpClient(stage, issue_key(stage, "acme"))
    card = "4111111111111111"
    assert client.send("POST", "/events", body=body_with(card, run_id=card)).status == 202
    (message,) = stage.sqs.queues[EVENTS]
    opened = wire.open_message(message.body)
    assert opened.head.run_id == card
    assert not [line for line in opened.lines if card.encode() in line]
