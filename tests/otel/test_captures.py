"""OTLP requests of real exporters: what each run comes to, and that nothing told is lost."""

import json
from collections.abc import Iterable
from decimal import Decimal
from itertools import permutations
from typing import Any

import msgspec
import pytest

from runtally.otel.spans import Span
from runtally.otel.steps import events_of_span
from tests.otel.completeness import lost
from tests.otel.expected import CAPTURES, DERIVED
from tests.otel.figures import payload_of, recorded
from tests.otel.samples import spans_of

SPLIT = tuple(f"captures/pydantic-ai-split-retry/00{n}.traces.body" for n in range(1, 8))
FILES = {
    folder: SPLIT if "split" in folder else (f"captures/{folder}/001.traces.body",)
    for folder in CAPTURES
} | {name: (f"derived/{name}",) for name in DERIVED}
each_file = pytest.mark.parametrize("name", FILES)
both_encodings = pytest.mark.parametrize("name", ["mini-swe.delta", "deerflow-cjk"])

_NOISE = Decimal("1e-15")
"""Costs that were sent as floats add up to a little more or less."""


@each_file
def test_each_run_comes_to_what_was_sent(name: str) -> None:
    expected = CAPTURES.get(name) or [DERIVED[name]]
    found = [run.figures for run in recorded(spans_of(*FILES[name])).values()]
    assert [f._replace(cost=f.cost.quantize(_NOISE)) for f in found] == list(expected)


@each_file
def test_nothing_told_is_lost(name: str) -> None:
    for span in spans_of(*FILES[name]):
        assert lost(span, payload_of_span(span)) == []


def test_what_is_lost_is_noticed() -> None:
    span = next(span for span in spans_of(*SPLIT) if span.events)
    payload = json.loads(payload_of_span(span))
    assert lost(span, encoded(payload)) == []
    for member in payload:
        assert lost(span, encoded({k: v for k, v in payload.items() if k != member})), member
    for name in payload["attributes"]:
        attributes = {k: v for k, v in payload["attributes"].items() if k != name}
        assert lost(span, encoded({**payload, "attributes": attributes})), name


@each_file
def test_phases_do_not_depend_on_the_order_of_arrival(name: str) -> None:
    spans = spans_of(*FILES[name])
    for run_id, run in recorded(spans).items():
        by_start = sorted(run.steps, key=lambda step: step.started_at)
        for order in (run.steps, run.steps[::-1], by_start, by_start[::-1]):
            assert run._replace(steps=order).phases == run.phases, run_id


def test_what_is_sent_again_is_the_same_byte_for_byte() -> None:
    first, second, third = (events_of(spans_of(name)) for name in SPLIT[:3])
    assert first == second == third
    assert len(first) == 1


def test_each_span_of_a_split_run_is_there_once_in_whatever_order_its_requests_come() -> None:
    requests = [spans_of(name) for name in SPLIT[2:]]
    assert sum(map(len, requests)) == 11
    expected = {run_id: run.figures for run_id, run in recorded(spans_of(*SPLIT)).items()}
    for order in permutations(requests):
        found = recorded(span for request in order for span in request)
        assert {run_id: run.figures for run_id, run in found.items()} == expected


@both_encodings
def test_protobuf_and_json_give_the_same_events(name: str) -> None:
    protobuf, from_json = (
        events_of(spans_of(f"derived/{name}.{ending}.gz")) for ending in ("pb", "json")
    )
    assert protobuf == from_json


def test_attributes_that_the_exporter_dropped_are_counted_on_the_step() -> None:
    (run,) = recorded(spans_of("captures/oi-long/001.traces.body")).values()
    (step,) = run.steps
    assert step.attributes is not None
    assert step.attributes["otel.dropped_attributes_count"] == 132
    payload = json.loads(payload_of(step))
    assert payload["dropped"] == {"attributes": 132}
    # `input.value` was among them, and the first 64 of 121 messages.
    contents = [message["message"]["content"] for message in payload["input"]]
    assert [content.split()[1] for content in contents] == [str(n) for n in range(63, 120)]


@pytest.mark.parametrize("folder", ["strands", "strands-latest-gzip"])
def test_a_large_result_is_whole(folder: str) -> None:
    run, _ = recorded(spans_of(f"captures/{folder}/001.traces.body")).values()
    outputs = [
        json.loads(payload_of(step))["output"] for step in run.steps if step.name == "read_file"
    ]
    longest = max((text for output in outputs for text in strings_in(output)), key=len)
    assert len(longest.encode()) == 400_000


def test_chinese_text_is_kept() -> None:
    """55 % of the messages' characters, and every one that was sent."""
    spans = spans_of("derived/deerflow-cjk.pb.gz")
    (run,) = recorded(spans).values()
    payloads = [json.loads(payload_of(step)) for step in run.steps]
    messages = "".join(
        strings_in([[payload.get("input"), payload.get("output")] for payload in payloads])
    )
    assert round(ideographs(messages) / len(messages), 2) == 0.55
    sent = "".join(strings_in([list(span.attributes.values()) for span in spans]))
    assert ideographs("".join(strings_in(payloads))) == ideographs(sent) > 100_000


def ideographs(text: str) -> int:
    return sum("\u4e00" <= character <= "\u9fff" for character in text)


def strings_in(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from strings_in(entry)


def events_of(spans: Iterable[Span]) -> list[bytes]:
    return [
        msgspec.json.encode([mapped.run_id, *mapped.events])
        for mapped in map(events_of_span, spans)
    ]


def payload_of_span(span: Span) -> bytes:
    (run,) = recorded([span]).values()
    return payload_of(run.steps[0])


def encoded(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload).encode()
