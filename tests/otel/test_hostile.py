"""What no exporter should send: it costs nobody else anything, and takes no time."""

import decimal
import json
from typing import Any

import msgspec
import pytest

from runtally import wire
from runtally.otel import messages, steps
from runtally.otel.spans import PARENT_IS_REMOTE
from runtally.otel.steps import Mapped, events_of_span
from runtally.wire import Rejected
from tests import otlp
from tests.otel.making import AGENT, MODEL, said, span
from tests.otlp import TRACE, as_json, as_protobuf, traces


def mapped_of(body: bytes) -> list[Mapped | Rejected]:
    return list(messages.mapped(messages.read("traces", body)))


ODD = {
    "output with an odd type": {"gen_ai.output.messages": '[{"parts":[{"type":["x"]}]}]'},
    "tokens beyond numbers": {**MODEL, "gen_ai.usage.input_tokens": "1e9999"},
    "tokens of a million digits": {**MODEL, "gen_ai.usage.input_tokens": "1e999999"},
    "costs beyond numbers": {
        **MODEL,
        "langfuse.observation.cost_details": '{"a":"9e999999","b":"9e999999"}',
    },
    "a number of 5,000 digits": {"llm.input_messages." + "9" * 5_000 + ".x": "y"},
    "20,000 numbered": {f"llm.input_messages.{n}.message.content": "x" for n in range(20_000)},
    "a path without end": {"llm.input_messages.0" + ".x" * 50_000: "y", "llm.input_messages.0": 1},
    "a huge name of an agent": {**AGENT, "gen_ai.agent.name": "1." * 1_000_000},
    "no strings": {"gen_ai.operation.name": ["chat"], "session.id": {"a": 1}, "metadata": 5},
}


@pytest.mark.parametrize("encode", [as_protobuf, as_json])
@pytest.mark.parametrize("attributes", ODD.values(), ids=ODD)
def test_an_odd_span_is_recorded_with_what_is_sound(encode: Any, attributes: Any) -> None:
    good, odd = mapped_of(encode(traces(otlp.span(2, 1), otlp.span(1, attributes=attributes))))
    assert isinstance(good, Mapped)
    assert isinstance(odd, Mapped)
    steps = [event for event in odd.events if isinstance(event, wire.Step)]
    assert steps[0].input_tokens is None
    assert steps[0].cost_usd is None


@pytest.mark.parametrize("kind", [-7, -1, 99])
def test_an_unknown_kind_stays_a_number(kind: int) -> None:
    (one,) = mapped_of(as_protobuf(traces(otlp.span(1, kind=kind))))
    assert isinstance(one, Mapped)
    (step,) = [event for event in one.events if isinstance(event, wire.Step)]
    assert isinstance(step.payload, msgspec.Raw)
    assert json.loads(bytes(step.payload))["kind"] == kind


GOOD = otlp.span(9, 1)
SHAPES: dict[str, dict[str, Any]] = {
    "null resource": {"resourceSpans": [None]},
    "no list of resources": {"resourceSpans": {}},
    "no list of scopes": {"resourceSpans": [{"scopeSpans": 5}]},
    "no list of spans": {"resourceSpans": [{"scopeSpans": [{"spans": {}}]}]},
    "null span": {"resourceSpans": [{"scopeSpans": [{"spans": [None]}]}]},
    "scope": {"resourceSpans": [{"scopeSpans": [{"scope": 5, "spans": [GOOD]}]}]},
    "resource": {
        "resourceSpans": [{"resource": {"attributes": {}}, "scopeSpans": [{"spans": [GOOD]}]}]
    },
    "name": traces(otlp.span(1, name=5)),
    "key": traces(otlp.span(1, attributes=[{"key": 5}])),
    "event": traces(otlp.span(1, events=[{"name": []}])),
    "status": traces(otlp.span(1, status=5)),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_json_of_another_shape_is_refused_and_costs_the_others_nothing(
    shape: dict[str, Any],
) -> None:
    (refused,) = mapped_of(as_json(shape))
    assert isinstance(refused, Rejected)
    if isinstance(shape["resourceSpans"], list):
        beside = {"resourceSpans": [*shape["resourceSpans"], *traces(GOOD)["resourceSpans"]]}
        refused, good = mapped_of(as_json(beside))
        assert isinstance(refused, Rejected)
        assert isinstance(good, Mapped)


@pytest.mark.parametrize("levels", [100, 1_000, 100_000])
def test_deep_json_is_recorded_or_refused(levels: int) -> None:
    deep = '{"arrayValue":{"values":[' * levels + "{}" + "]}}" * levels
    one = json.dumps(otlp.span(1)).replace(
        "}", f', "attributes": [{{"key": "x", "value": {deep}}}]}}'
    )
    body = f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{one}]}}]}}]}}'.encode()
    if levels == 100_000:
        with pytest.raises(Rejected, match="not_json"):
            mapped_of(body)
        return
    (found,) = mapped_of(body)
    assert isinstance(found, Mapped if levels == 100 else Rejected)


def test_a_fault_of_the_mapping_costs_one_span(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = iter([True, False, False])

    def fail_once(source: Any, redact: Any) -> Mapped:
        if next(faults):
            raise ZeroDivisionError
        return events_of_span(source, redact)

    monkeypatch.setattr(steps, "events_of_span", fail_once)
    first, *others = messages.mapped([span(), span(), span()])
    assert isinstance(first, Rejected)
    assert first.reason == "unmappable"
    assert all(isinstance(one, Mapped) for one in others)


def test_a_run_id_that_is_empty_is_none() -> None:
    """As when a variable of the shell is not set."""
    body = as_json(traces(otlp.span(1), resource={"runtally.run_id": ""}))
    (one,) = mapped_of(body)
    assert isinstance(one, Mapped)
    assert (one.run_id, one.ends_run) == (TRACE, True)


def test_costs_add_up_exactly_whatever_context_the_application_has() -> None:
    details = {"langfuse.observation.cost_details": '{"a": 0.0012345, "b": 0.0067891}'}
    with decimal.localcontext(decimal.Context(prec=3)):
        assert said(MODEL | details).cost_usd == "0.0080236"


@pytest.mark.parametrize("cost", ["n/a", -1, "$0.01", [1], {"a": 1}])
def test_a_cost_that_is_none_gives_way_to_a_computed_one(cost: Any) -> None:
    used = {"gen_ai.request.model": "gpt-5-mini", "gen_ai.usage.input_tokens": 1_000_000}
    step = said(MODEL | used | {"gen_ai.usage.output_tokens": 0, "gen_ai.usage.cost": cost})
    assert (step.cost_usd, step.cost_computed_usd) == (None, "0.25")
    assert (step.attributes or {})["runtally.dropped"] == ["cost_usd"]


def test_a_service_that_another_one_called_starts_the_run_and_does_not_end_it() -> None:
    made = otlp.span(2, 1, flags=PARENT_IS_REMOTE, attributes={"runtally.pipeline": "nightly"})
    for body in (as_json(traces(made)), as_protobuf(traces(made))):
        (one,) = mapped_of(body)
        assert isinstance(one, Mapped)
        start, step = one.events
        assert isinstance(start, wire.RunStarted)
        assert (start.pipeline, isinstance(step, wire.Step)) == ("nightly", True)


def test_ids_in_capitals_are_the_same_ids() -> None:
    """OTLP's JSON has hex of either case."""
    made = otlp.span(10, 11)
    capital = made | {name: made[name].upper() for name in ("traceId", "spanId", "parentSpanId")}
    assert mapped_of(as_json(traces(capital))) == mapped_of(as_json(traces(made)))


@pytest.mark.parametrize("encode", [as_protobuf, as_json])
def test_a_log_record_without_a_time_has_that_of_who_saw_it(encode: Any) -> None:
    record = {
        "observedTimeUnixNano": "1795984949123456789",
        "eventName": "gen_ai.client.inference.operation.details",
        "traceId": TRACE,
        "severityNumber": 9,
    }
    (one,) = messages.mapped(messages.read("logs", encode(otlp.logs(record))))
    assert isinstance(one, Mapped)
    (step,) = one.events
    assert isinstance(step, wire.Step)
    assert step.ended_at == 1795984949123456789
    assert isinstance(step.payload, msgspec.Raw)
    assert json.loads(bytes(step.payload))["severity"] == "9"


def test_content_in_the_body_of_a_log_record_stays_where_attributes_have_some_too() -> None:
    attributes = otlp.attributes({"gen_ai.input.messages": "[1]"})
    inner = otlp.attributes({"gen_ai.input.messages": "[2]", "gen_ai.output.messages": "[3]"})
    record = {
        "timeUnixNano": "1795984949123456789",
        "eventName": "gen_ai.client.inference.operation.details",
        "traceId": TRACE,
        "attributes": attributes,
        "body": {"kvlistValue": {"values": inner}},
    }
    (one,) = messages.mapped(messages.read("logs", as_json(otlp.logs(record))))
    assert isinstance(one, Mapped)
    (step,) = one.events
    assert isinstance(step, wire.Step)
    assert isinstance(step.payload, msgspec.Raw)
    payload = json.loads(bytes(step.payload))
    assert (payload["input"], payload["output"]) == ([1], [3])
    assert payload["body"] == {"gen_ai.input.messages": "[2]"}


@pytest.mark.parametrize(
    ("total", "expected"), [(1_501, 1_500), (1_001, 1_000), (None, 1_000)], ids=str
)
def test_langfuses_total_tells_whether_cached_tokens_are_beside_the_input(
    total: int | None, expected: int
) -> None:
    """Its buckets do not overlap; some emitters' do: https://github.com/langfuse/langfuse/issues/10592"""
    usage = {"input": 1_000, "input_cached_tokens": 500, "output": 1, "total": total}
    details = {"langfuse.observation.usage_details": json.dumps(usage)}
    assert said(MODEL | details).input_tokens == expected


def test_a_name_and_names_below_it_are_both_kept() -> None:
    step = said(
        {"llm.tools.0.a": 1, "llm.tools.0.a.b": 2, "llm.tools.1.a.b": 3, "llm.tools.1.a": 4}
    )
    assert isinstance(step.payload, msgspec.Raw)
    assert json.loads(bytes(step.payload))["tools"] == [
        {"a": {"": 1, "b": 2}},
        {"a": {"": 4, "b": 3}},
    ]


def test_claude_codes_traces_beside_its_logs_count_nothing_twice() -> None:
    spans = [
        otlp.span(1, name="claude_code.interaction"),
        otlp.span(
            2,
            1,
            name="claude_code.llm_request",
            attributes={"gen_ai.operation.name": "chat", "input_tokens": 10, "output_tokens": 5},
        ),
        otlp.span(3, 1, name="claude_code.tool", attributes={"success": False}),
    ]
    records: list[dict[str, Any]] = [
        {
            "eventName": "claude_code.api_request",
            "spanId": f"{2:016x}",
            "attributes": otlp.attributes(
                {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01}
            ),
        },
        {
            "eventName": "claude_code.tool_result",
            "spanId": f"{3:016x}",
            "attributes": otlp.attributes({"success": "false", "tool_name": "Bash"}),
        },
        {"eventName": "claude_code.api_error", "spanId": f"{2:016x}"},
    ]
    base = {"timeUnixNano": "1795984949123456789", "traceId": TRACE}
    found = mapped_of(as_json(traces(*spans)))
    found += messages.mapped(
        messages.read("logs", as_json(otlp.logs(*(base | r for r in records))))
    )
    steps_of = [e for one in found if isinstance(one, Mapped) for e in one.events]
    steps_only = [event for event in steps_of if isinstance(event, wire.Step)]
    assert len(steps_only) == 6
    assert sum(step.input_tokens or 0 for step in steps_only) == 10
    assert [step.cost_usd for step in steps_only if step.cost_usd] == ["0.01"]
    assert sum(step.status == "failed" for step in steps_only) == 1
