"""Spans of real tracers: in the process and through OTLP, in either encoding, they are the same."""

import enum
import itertools
import json
import math
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from runtally import FileSender, Recorder, wire
from runtally.cuts import Sealed
from runtally.otel import SpanExporter, otlp
from runtally.otel.exporter import span_of
from runtally.otel.spans import Span
from runtally.otel.steps import events_of_span
from runtally.senders import Delivery
from tests.otlp import json_of
from tests.unit.sdk.recording import KeepingSender, events_of, until

AT = 1_795_984_949_123_456_789


class Traced(NamedTuple):
    """A tracer, and the spans that it has ended so far."""

    tracer: trace.Tracer
    kept: InMemorySpanExporter

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.kept.get_finished_spans()


def traced(
    resource: Resource | None = None,
    limits: SpanLimits | None = None,
    *,
    name: str = "tests",
    version: str | None = None,
    schema_url: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Traced:
    kept = InMemorySpanExporter()
    provider = provider_of(SimpleSpanProcessor(kept), resource, limits, Counted())
    return Traced(provider.get_tracer(name, version, schema_url, attributes), kept)


class Counted(IdGenerator):
    """Ids that are the same in each run of a property."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._ids)

    def generate_trace_id(self) -> int:
        return next(self._ids)


def provider_of(
    processor: Any,
    resource: Resource | None = None,
    limits: SpanLimits | None = None,
    ids: IdGenerator | None = None,
) -> TracerProvider:
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=resource or Resource({"service.name": "agents"}),
        span_limits=limits,
        id_generator=ids,
        shutdown_on_exit=False,
    )
    provider.add_span_processor(processor)
    return provider


def assert_the_same_on_every_way(spans: Sequence[ReadableSpan]) -> list[Span]:
    """Spans and events; spans by `repr`, to which 1 is neither True nor 1.0."""
    made = [span_of(span) for span in spans]
    protobuf = encode_spans(spans).SerializeToString()
    assert len(made) > 0
    for body in (protobuf, json_of(protobuf)):
        read = {getattr(span, "span_id", ""): span for span in otlp.spans_in(body)}
        assert [repr(read[span.span_id]) for span in made] == [repr(span) for span in made]
        assert [recorded(read[span.span_id]) for span in made] == [recorded(span) for span in made]
    return made


def recorded(span: Any) -> object:
    try:
        mapped = events_of_span(span)
    except wire.Rejected as rejected:
        return str(rejected)
    return mapped.run_id, [wire.encode_event(event) for event in mapped.events]


REMOTE = trace.SpanContext(
    0x0AF7651916CD43DD8448EB211C80319C,
    0x00F067AA0BA902B7,
    is_remote=True,
    trace_flags=trace.TraceFlags(1),
    trace_state=trace.TraceState([("rojo", "00f067aa0ba902b7"), ("congo", "t61rcWkgMzE")]),
)
BELOW_REMOTE = trace.set_span_in_context(trace.NonRecordingSpan(REMOTE), otel_context.Context())
EVERY_TYPE: dict[str, Any] = {
    "text": "你好 🌍 \x00\ufffe",
    "empty": "",
    "bool": True,
    "int": 2**63 - 1,
    "smallest": -(2**63),
    "float": 0.1,
    "whole": 1.0,
    "minus zero": -0.0,
    "tiny": 5e-324,
    "nan": math.nan,
    "infinite": -math.inf,
    "none": None,
    "bytes": b"\x00\xff",
    "strings": ["a", "ä", "🦊"],
    "ints": (1, 2),
    "bools": [True, False],
    "floats": [1.0, math.inf],
    "nothing": [],
    "mixed": [1, "a", None, [b"x", {"deep": [2.0]}]],
    "object": {"a": {"b": None}, "empty": {}},
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-5-mini",
    "gen_ai.usage.input_tokens": 1000,
    "gen_ai.usage.output_tokens": 50,
    "gen_ai.input.messages": '[{"role": "user", "content": "你好", "n": 9007199254740993}]',
    "llm.input_messages.0.message.role": "user",
}


def test_every_type_of_attribute_wherever_there_are_attributes() -> None:
    made = traced(
        Resource(EVERY_TYPE, "https://example.com/resource"),
        name="instrumentation",
        version="1.2",
        schema_url="https://example.com/scope",
        attributes=EVERY_TYPE,
    )
    links = [trace.Link(REMOTE, EVERY_TYPE), trace.Link(REMOTE)]
    span = made.tracer.start_span(
        "chat 模型", BELOW_REMOTE, trace.SpanKind.CLIENT, EVERY_TYPE, links, AT
    )
    span.add_event("with", EVERY_TYPE, AT + 1)
    span.add_event("without")
    span.end(AT + 2)
    (only,) = assert_the_same_on_every_way(made.spans)
    assert (only.kind, only.trace_state) == (3, REMOTE.trace_state.to_header())
    assert only.parent_span_id == "00f067aa0ba902b7"
    assert only.scope.schema_url == "https://example.com/scope"
    assert only.attributes["bytes"] == {"base64": "AP8="}
    assert list(only.attributes) == list(EVERY_TYPE)
    assert (len(only.events), len(only.links)) == (2, 2)


def test_the_resources_schema_counts_where_the_scope_has_none() -> None:
    made = traced(Resource({}, "https://example.com/resource"), name="", attributes=None)
    made.tracer.start_span("s").end()
    (only,) = assert_the_same_on_every_way(made.spans)
    assert only.scope.schema_url == "https://example.com/resource"


def test_failures_and_statuses() -> None:
    made = traced()
    tracer = made.tracer
    with pytest.raises(KeyError), tracer.start_as_current_span("raises"):
        raise KeyError("🔑")
    for code in trace.StatusCode:
        tracer.start_span("status").set_status(trace.Status(code))
        with tracer.start_as_current_span("status") as span:
            span.set_status(code, "why" if code is trace.StatusCode.ERROR else None)
    failed, *_ = assert_the_same_on_every_way(made.spans)
    assert (failed.status_code, failed.events[0].name) == (2, "exception")
    (_, step, ended) = events_of_span(failed).events
    assert isinstance(step, wire.Step)
    assert (step.status, step.error) == ("failed", "KeyError: '🔑'")
    assert isinstance(ended, wire.RunEnded)


@pytest.mark.parametrize("kind", trace.SpanKind)
def test_every_kind_by_the_number_of_otlp(kind: trace.SpanKind) -> None:
    made = traced()
    made.tracer.start_span("s", kind=kind).end()
    (only,) = assert_the_same_on_every_way(made.spans)
    assert only.kind == kind.value + 1


def test_what_limits_dropped_is_counted() -> None:
    limits = SpanLimits(
        max_span_attributes=2,
        max_events=1,
        max_links=1,
        max_event_attributes=1,
        max_link_attributes=1,
        max_span_attribute_length=3,
    )
    made = traced(limits=limits)
    some: dict[str, Any] = {"a": "你好世界🌍", "b": 2, "c": 3}
    links = [trace.Link(REMOTE, some) for _ in range(3)]
    span = made.tracer.start_span("s", attributes=some, links=links)
    for _ in range(4):
        span.add_event("e", some)
    span.end()
    (only,) = assert_the_same_on_every_way(made.spans)
    assert (only.dropped_attributes, only.dropped_events, only.dropped_links) == (1, 3, 2)
    assert (only.events[0].dropped_attributes, only.links[0].dropped_attributes) == (2, 2)


class Colour(str, enum.Enum):  # noqa: UP042 - its `str()` is another than a StrEnum's
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Ratio(float):
    def __repr__(self) -> str:
        return "Ratio()"


def test_subclasses_of_plain_types_count_as_those() -> None:
    made = traced()
    given_: Any = {"colour": Colour.RED, "level": Level.HIGH, "ratio": Ratio(0.5)}
    made.tracer.start_span("s", attributes=given_).end()
    (only,) = assert_the_same_on_every_way(made.spans)
    assert repr(only.attributes) == "{'colour': 'red', 'level': 3, 'ratio': 0.5}"


def test_a_span_without_anything_optional() -> None:
    bare = ReadableSpan("s", context=REMOTE, resource=Resource({}))
    (only,) = assert_the_same_on_every_way([bare])
    assert recorded(only) == "startTimeUnixNano: no time at which a span can begin (invalid_field)"


def test_a_protobuf_of_any_length_is_no_json() -> None:
    """A line feed names field 1, and `{` behind it would be its length of 123 bytes."""
    lengths = set()
    for length in range(60):
        made = traced(name="t")
        made.tracer.start_span("x" * length).end()
        assert_the_same_on_every_way(made.spans)
        lengths.add(encode_spans(made.spans).SerializeToString()[:2])
    assert b"\n{" in lengths


texts = st.text(max_size=8)
scalars = st.one_of(
    st.none(),
    texts,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=8),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3)
    ),
    max_leaves=8,
)
TOLD = [
    "runtally.run_id", "runtally.run_end", "runtally.phase", "gen_ai.operation.name",
    "gen_ai.tool.name", "gen_ai.usage.input_tokens", "gen_ai.usage.cost", "gen_ai.input.messages",
    "gen_ai.output.messages", "llm.input_messages.0.message.content", "error.type", "metadata",
    "gen_ai.request.model", "gen_ai.provider.name", "langfuse.observation.usage_details",
]  # fmt: skip
attributes_ = st.dictionaries(st.sampled_from(TOLD) | texts.filter(bool), values, max_size=6)
times = st.integers(0, 2**63 - 1)


@st.composite
def spans_of_tracers(draw: st.DrawFn) -> Sequence[ReadableSpan]:
    limit = st.none() | st.integers(0, 4)
    limits = SpanLimits(
        max_span_attributes=draw(limit),
        max_events=draw(limit),
        max_links=draw(limit),
        max_event_attributes=draw(limit),
        max_link_attributes=draw(limit),
        max_span_attribute_length=draw(limit),
    )
    made = traced(
        Resource(draw(attributes_), draw(texts)),
        limits,
        name=draw(texts),
        version=draw(st.none() | texts),
        schema_url=draw(st.none() | texts),
        attributes=draw(attributes_),
    )
    parent = draw(st.sampled_from([otel_context.Context(), BELOW_REMOTE]))
    for _ in range(draw(st.integers(1, 3))):
        links = [trace.Link(REMOTE, draw(st.none() | attributes_)) for _ in range(draw(LINKS))]
        span = made.tracer.start_span(
            draw(texts),
            parent,
            draw(st.sampled_from(trace.SpanKind)),
            draw(attributes_),
            links,
            draw(times),
        )
        for _ in range(draw(LINKS)):
            span.add_event(draw(texts), draw(st.none() | attributes_), draw(times))
        if draw(st.booleans()):
            span.record_exception(ValueError(draw(texts)), timestamp=draw(times))
        span.set_status(draw(st.sampled_from(trace.StatusCode)), draw(st.none() | texts))
        span.end(draw(times))
        parent = draw(st.sampled_from([parent, trace.set_span_in_context(span)]))
    return made.spans


LINKS = st.integers(0, 2)


@given(spans_of_tracers())
def test_any_spans_are_the_same_on_every_way(spans: Sequence[ReadableSpan]) -> None:
    assert_the_same_on_every_way(spans)


def test_what_otlp_has_no_place_for_is_kept(recorder: Recorder, sender: KeepingSender) -> None:
    """Its exporters drop such an attribute, and for such a name the whole request."""
    tracer = provider_of(SimpleSpanProcessor(SpanExporter(recorder))).get_tracer("t")
    tracer.start_span("half \ud83c", attributes={"big": 2**64, "half": "a\ud83c"}).end()
    recorder.close()
    (step,) = sender.steps
    assert step.name == "half \ufffd"
    told = json.loads(bytes(step.payload))["attributes"]  # type: ignore[arg-type]
    assert told == {"big": 2**64, "half": "a\ufffd"}


@pytest.fixture
def tracer(recorder: Recorder) -> Iterator[trace.Tracer]:
    yield provider_of(SimpleSpanProcessor(SpanExporter(recorder))).get_tracer("tests")
    recorder.close()


def shapes(sender: KeepingSender) -> list[list[str]]:
    """Of each message: the names of its steps, and the types of its other events."""
    return [
        [event.name or "" if isinstance(event, wire.Step) else type(event).__name__ for event in of]
        for of in map(events_of, sender.bodies)
    ]


def run_ids(sender: KeepingSender) -> list[str | None]:
    return [wire.open_message(body.decode()).head.run_id for body in sender.bodies]


def test_a_trace_is_a_run_in_one_message_sent_at_its_end(
    tracer: trace.Tracer, sender: KeepingSender
) -> None:
    with tracer.start_as_current_span("research") as root:
        with tracer.start_as_current_span("plan"), tracer.start_as_current_span("chat"):
            pass
        with tracer.start_as_current_span("write"):
            pass
    until(lambda: sender.bodies)  # nobody flushed
    assert shapes(sender) == [["chat", "plan", "write", "RunStarted", "research", "RunEnded"]]
    assert run_ids(sender) == [f"{root.get_span_context().trace_id:032x}"]
    steps = {step.name: step for step in sender.steps}
    assert steps["research"].step_id.endswith(steps["plan"].parent_id or "?")
    assert steps["plan"].step_id.endswith(steps["chat"].parent_id or "?")
    assert (sender.started.pipeline, sender.ended.status) == ("research", "succeeded")


def test_two_traces_are_two_runs(tracer: trace.Tracer, sender: KeepingSender) -> None:
    for _ in range(2):
        with tracer.start_as_current_span("root"):
            tracer.start_span("child").end()
    until(lambda: len(sender.bodies) == 2)
    assert shapes(sender) == [["child", "RunStarted", "root", "RunEnded"]] * 2
    assert len(set(run_ids(sender))) == 2


def test_a_run_id_joins_traces_until_one_ends_the_run(
    tracer: trace.Tracer, recorder: Recorder, sender: KeepingSender
) -> None:
    given_ = {"runtally.run_id": "order-7"}
    tracer.start_span("first", attributes=given_).end()
    tracer.start_span("second", attributes=given_).end()
    assert not sender.bodies  # the run goes on
    tracer.start_span("last", attributes={**given_, "runtally.run_end": True}).end()
    until(lambda: sender.bodies)
    assert run_ids(sender) == ["order-7"]
    assert shapes(sender) == [
        ["RunStarted", "first", "RunStarted", "second", "RunStarted", "last", "RunEnded"]
    ]


def test_the_same_spans_again_are_the_same_message(
    recorder: Recorder, sender: KeepingSender
) -> None:
    made = traced()
    with made.tracer.start_as_current_span("root", attributes=EVERY_TYPE):
        made.tracer.start_span("child", attributes=EVERY_TYPE).end()
    exporter = SpanExporter(recorder)
    for _ in range(2):
        assert exporter.export(made.spans) is SpanExportResult.SUCCESS
    assert exporter.force_flush()
    assert len(sender.bodies) == 2
    assert sender.bodies[0] == sender.bodies[1]
    recorder.close()


def test_the_events_are_those_of_the_otlp_route(recorder: Recorder, sender: KeepingSender) -> None:
    made = traced()
    made.tracer.start_span("root", attributes=EVERY_TYPE).end()
    SpanExporter(recorder).export(made.spans)
    recorder.close()
    (read,) = otlp.spans_in(encode_spans(made.spans).SerializeToString())
    assert isinstance(read, Span)
    mapped = events_of_span(read)
    lines = [wire.encode_event(event) for event in mapped.events]
    assert sender.bodies == [wire.seal(wire.Head(1, "acme", mapped.run_id), lines)]


def test_a_payload_over_the_limit_gives_way_to_a_note() -> None:
    sender = KeepingSender(limit_bytes=20_000)
    recorder = Recorder(tenant_id="acme", sender=sender)
    tracer = provider_of(SimpleSpanProcessor(SpanExporter(recorder))).get_tracer("t")
    tracer.start_span("s", attributes={"output.value": "x" * 30_000}).end()
    assert not recorder.close()
    assert all(len(body) < 20_000 for body in sender.bodies)
    assert b"runtally.omitted" in bytes(sender.steps[0].payload)  # type: ignore[arg-type]


class Broken(ReadableSpan):
    @property
    def attributes(self) -> Any:
        raise RuntimeError("for the test")


@pytest.mark.parametrize(
    ("span", "told"),
    [
        (ReadableSpan("s", context=REMOTE, start_time=0), "startTimeUnixNano"),
        (ReadableSpan("s", start_time=AT), "traceId"),
        (Broken("s", context=REMOTE, start_time=AT), "for the test"),
    ],
)
def test_a_span_that_is_no_step_is_told_and_costs_no_other(
    recorder: Recorder,
    sender: KeepingSender,
    caplog: pytest.LogCaptureFixture,
    span: ReadableSpan,
    told: str,
) -> None:
    good = ReadableSpan("good", context=REMOTE, start_time=AT)
    exporter = SpanExporter(recorder)
    assert exporter.export([span, good]) is SpanExportResult.FAILURE
    assert told in caplog.text
    assert not exporter.force_flush()
    assert exporter.force_flush()  # told once
    assert [step.name for step in sender.steps] == ["good"]
    recorder.close()


def test_a_loss_is_never_raised_into_the_application(sender: KeepingSender) -> None:
    recorder = Recorder(tenant_id="acme", sender=sender, on_loss="raise")
    exporter = SpanExporter(recorder)
    for settle in (exporter.force_flush, exporter.shutdown):
        exporter.export([ReadableSpan("s")])
        assert not settle()
    assert not recorder.close()


def test_a_flush_tells_what_is_left(recorder: Recorder, sender: KeepingSender) -> None:
    sender.down = True
    exporter = SpanExporter(recorder)
    exporter.export([ReadableSpan("s", context=REMOTE, start_time=AT)])
    assert not exporter.force_flush(10_000)
    sender.down = False
    assert exporter.force_flush(10_000)
    assert len(sender.steps) == 1
    recorder.close()


def test_shutdown_leaves_a_recorder_of_the_applications_at_work(
    recorder: Recorder, sender: KeepingSender
) -> None:
    provider = provider_of(BatchSpanProcessor(SpanExporter(recorder)))
    provider.get_tracer("t").start_span("s").end()
    provider.shutdown()
    assert shapes(sender) == [["RunStarted", "s", "RunEnded"]]
    assert not recorder._outbox._closed
    recorder.close()


def test_shutdown_closes_a_recorder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNTALLY_TENANT_ID", "acme")
    monkeypatch.setenv("RUNTALLY_QUEUE_URL", "https://queue")
    monkeypatch.setenv("RUNTALLY_SPOOL_DIR", str(tmp_path))
    exporter = SpanExporter.from_environment()
    outbox = exporter._recorder._outbox
    assert exporter.force_flush()
    assert outbox._thread is not None
    exporter.shutdown()
    until(lambda: outbox._thread is None)


@pytest.mark.parametrize("processor", [SimpleSpanProcessor, BatchSpanProcessor])
def test_many_threads_of_many_traces(
    recorder: Recorder, sender: KeepingSender, processor: Any
) -> None:
    provider = provider_of(processor(SpanExporter(recorder)))
    tracer = provider.get_tracer("t")

    def trace_one(number: int) -> None:
        with tracer.start_as_current_span(f"root-{number}"):
            for _ in range(20):
                tracer.start_span("child").end()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(trace_one, range(40)))
    provider.shutdown()
    assert not recorder.close()
    assert len(sender.steps) == 40 * 21
    assert len({step.step_id for step in sender.steps}) == 40 * 21
    assert sum(isinstance(event, wire.RunEnded) for event in sender.events) == 40


class LookingSender(KeepingSender):
    """Notes whether instrumentations of OpenTelemetry would see its requests."""

    seen: bool | None = None

    def send(self, messages: Sequence[Sealed]) -> Delivery:
        self.seen = not otel_context.get_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY)
        return super().send(messages)


def test_sending_is_not_traced_in_turn() -> None:
    """A span for each message sent, sent itself, would never end."""
    sender = LookingSender()
    with Recorder(tenant_id="acme", sender=sender) as recorder, recorder.run("p"):
        pass
    assert sender.seen is False
    assert otel_context.get_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY) is None


AT_EXIT = """
import os, sys
{first}
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import {processor}

provider = TracerProvider()
from runtally import FileSender, Recorder
from runtally.otel import SpanExporter

recorder = Recorder(tenant_id="acme", sender=FileSender(sys.argv[1]))
provider.add_span_processor({processor}(SpanExporter(recorder)))
tracer = provider.get_tracer("t")
{last}
tracer.start_span("parent", attributes={{"runtally.run_id": "r"}}).end()
"""
FORKED = """
if os.fork() == 0:
    tracer.start_span("child", attributes={"runtally.run_id": "r"}).end()
    provider.force_flush()
    recorder.close()
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("processor", ["SimpleSpanProcessor", "BatchSpanProcessor"])
@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ("", "", ["parent"]),
        ("import runtally.recorder", "", ["parent"]),
        ("", FORKED, ["child", "parent"]),
    ],
    ids=["provider first", "recorder first", "forked"],
)
def test_what_nobody_flushed_is_sent_at_exit(
    tmp_path: Path, processor: str, first: str, last: str, names: list[str]
) -> None:
    path = tmp_path / "sent.jsonl"
    script = textwrap.dedent(AT_EXIT).format(first=first, last=last, processor=processor)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, str(path)]
    subprocess.run(command, check=True)  # noqa: S603
    events = [event for body in path.read_bytes().splitlines() for event in events_of(body)]
    assert [event.name for event in events if isinstance(event, wire.Step)] == names


def test_the_file_sender_takes_spans_too(tmp_path: Path) -> None:
    recorder = Recorder(tenant_id="acme", sender=FileSender(tmp_path / "sent.jsonl"))
    tracer = provider_of(SimpleSpanProcessor(SpanExporter(recorder))).get_tracer("t")
    tracer.start_span("s").end()
    assert not recorder.close()
    (body,) = (tmp_path / "sent.jsonl").read_bytes().splitlines()
    assert [type(event) for event in events_of(body)] == [
        wire.RunStarted,
        wire.Step,
        wire.RunEnded,
    ]


@pytest.mark.parametrize("module", ["runtally", "runtally.otel", "runtally.otel.steps"])
def test_opentelemetry_is_not_loaded_before_the_exporter_is_asked_for(module: str) -> None:
    script = f"import sys, {module}, runtally.recorder; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603
    assert not [name for name in run.stdout.split() if name.startswith("opentelemetry")]
