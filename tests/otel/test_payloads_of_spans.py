"""The payload of a step: all that its span told, what it was about in front."""

from runtally.otel.spans import Link, Scope, Span, SpanEvent
from tests.otel.completeness import lost
from tests.otel.figures import payload_of
from tests.otel.making import MODEL, TRACE, noted, payload, said, span, step_of


class TestPayload:
    def everything(self) -> Span:
        return span(
            {
                "gen_ai.system_instructions": '[{"type": "text", "content": "be brief"}]',
                "gen_ai.input.messages": [{"role": "user", "parts": [{"content": "你好 🌍"}]}],
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.1.tool_call.id": "c2",
                "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                "llm.output_messages.1.message.content": "",
                "llm.tools.0.tool.json_schema": '{"type": "object"}',
                "retrieval.documents.10.document.id": "k",
                "retrieval.documents.2.document.score": 0.5,
                "embedding.embeddings.0.embedding.vector": [0.25, 1e-9, 3],
                "input.value": "the input once more",
                "unheard.of": {"nested": [1, {"deep": None}], "big": 2**63 - 1},
                "flags": [True, False],
                "nothing": None,
                "no.text": "",
                "raw": {"base64": "AAEC"},
                "looks.like": "[not json",
            },
            kind=3,
            status_code=2,
            status_message="上限",
            trace_state="vendor=1",
            events=[
                SpanEvent("gen_ai.user.message", 5, {"content": "asked", "id": 1}, 2),
                SpanEvent("gen_ai.choice", 6, {"message": '{"content": "said"}', "index": 0}, 3),
                SpanEvent("exception", 7, {"exception.message": "上限"}, 4),
                SpanEvent("bare", 8, {}),
            ],
            links=[Link(TRACE, "00f067aa0ba902b7", {"why": "follows"}, 1)],
            scope=Scope(
                {"service.name": "a", "host": ["x"]}, "by hand", "1.0", {"k": 1}, "http://s"
            ),
            dropped_attributes=1,
            dropped_events=2,
            dropped_links=3,
        )

    def test_holds_all_that_a_span_told(self) -> None:
        assert lost(self.everything(), payload_of(step_of(self.everything()))) == []

    def test_has_in_front_what_the_span_was_about(self) -> None:
        told = payload(self.everything())
        assert list(told)[:4] == ["instructions", "input", "output", "tools"]
        assert told["instructions"] == [{"type": "text", "content": "be brief"}]
        assert told["output"] == [
            {
                "message": {
                    "role": "assistant",
                    "tool_calls": [{"tool_call": {"id": "c1"}}, {"tool_call": {"id": "c2"}}],
                }
            },
            {"message": {"content": ""}},
        ]
        assert told["attributes"]["retrieval.documents"] == [
            {"document": {"score": 0.5}},
            {"document": {"id": "k"}},
        ]

    def test_messages_that_came_as_events_are_the_input_and_the_output(self) -> None:
        events = [
            SpanEvent("gen_ai.system.message", 5, {"content": "be brief"}),
            SpanEvent("gen_ai.user.message", 6, {"content": '[{"text": "hi"}]'}),
            SpanEvent("gen_ai.choice", 7, {"message": "hello", "finish_reason": "stop"}, 2),
        ]
        given = span(MODEL, events=events)
        told = payload(given)
        assert told["input"] == [
            {"role": "system", "content": "be brief", "time_unix_nano": 5},
            {"role": "user", "content": [{"text": "hi"}], "time_unix_nano": 6},
        ]
        assert told["output"] == [
            {
                "role": "assistant",
                "message": "hello",
                "finish_reason": "stop",
                "time_unix_nano": 7,
                "dropped_attributes": 2,
            }
        ]
        assert "events" not in told
        assert lost(given, payload_of(step_of(given))) == []

    def test_numbers_inside_json_text_stay_as_they_were_written(self) -> None:
        text = '{"n": 9007199254740993, "x": 1.10, "n": 1e400}'
        written = payload_of(said({"gen_ai.input.messages": text}))
        assert b'"input":{"n":9007199254740993,"x":1.10,"n":1e400}' in written

    def test_what_no_strict_parser_takes_is_mended(self) -> None:
        deep = "[" * 5000 + "]" * 5000
        given = span({"gen_ai.input.messages": deep, "half": "\ud83d", "not": float("nan")})
        told = payload(given)
        assert told["input"] == deep
        assert (told["attributes"]["half"], told["attributes"]["not"]) == ("\ufffd", "NaN")

    def test_what_the_exporter_dropped_is_said_on_the_step(self) -> None:
        step = step_of(span(dropped_attributes=132, dropped_events=3))
        assert noted(step) == {"otel.dropped_attributes_count": 132, "otel.dropped_events_count": 3}
