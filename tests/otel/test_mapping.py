"""What kind of step a span becomes, how it ended, and what it is called by."""

from typing import Any

import pytest

from runtally import names, wire
from runtally.otel.spans import Scope, Span, SpanEvent
from runtally.otel.steps import events_of_span
from tests import build
from tests.otel.making import AGENT, MODEL, said, span, step_of


class TestKind:
    @pytest.mark.parametrize(
        ("attributes", "kind"),
        [
            ({"gen_ai.operation.name": "chat"}, "model"),
            ({"gen_ai.operation.name": "generate_content"}, "model"),
            ({"gen_ai.operation.name": "text_completion"}, "model"),
            ({"gen_ai.operation.name": "embeddings"}, "embedding"),
            ({"gen_ai.operation.name": "retrieval"}, "retriever"),
            ({"gen_ai.operation.name": "execute_tool"}, "tool"),
            ({"gen_ai.operation.name": "create_agent"}, "agent"),
            ({"gen_ai.operation.name": "invoke_agent"}, "agent"),
            ({"gen_ai.operation.name": "invoke_workflow"}, "workflow"),
            ({"gen_ai.operation.name": "execute_event_loop_cycle"}, "chain"),
            ({"openinference.span.kind": "LLM"}, "model"),
            ({"openinference.span.kind": "TOOL"}, "tool"),
            ({"openinference.span.kind": "AGENT"}, "agent"),
            ({"openinference.span.kind": "CHAIN"}, "chain"),
            ({"openinference.span.kind": "RETRIEVER"}, "retriever"),
            ({"openinference.span.kind": "RERANKER"}, "reranker"),
            ({"openinference.span.kind": "EMBEDDING"}, "embedding"),
            ({"openinference.span.kind": "GUARDRAIL"}, "guardrail"),
            ({"openinference.span.kind": "EVALUATOR"}, "evaluator"),
            ({"traceloop.span.kind": "workflow"}, "workflow"),
            ({"traceloop.span.kind": "task"}, "chain"),
            ({"traceloop.span.kind": "agent"}, "agent"),
            ({"traceloop.span.kind": "tool"}, "tool"),
            ({"langfuse.observation.type": "generation"}, "model"),
            ({"langfuse.observation.type": "tool"}, "tool"),
            ({"langfuse.observation.type": "span"}, "span"),
            ({"ai.operationId": "ai.generateText"}, "agent"),
            ({"ai.operationId": "ai.generateText.doGenerate"}, "model"),
            ({"ai.operationId": "ai.streamText.doStream"}, "model"),
            ({"ai.operationId": "ai.toolCall"}, "tool"),
            ({"ai.operationId": "ai.embed.doEmbed"}, "embedding"),
            ({"langsmith.span.kind": "llm"}, "model"),
            ({"llm.request.type": "completion"}, "model"),
            ({"span.type": "inference.framework"}, "model"),
            ({"span.type": "inference.modelapi"}, "chain"),
            ({"gen_ai.tool.name": "lookup", "gen_ai.request.model": "m"}, "tool"),
            ({"agent_name": "joker", "gen_ai.usage.input_tokens": 1}, "agent"),
            ({"gen_ai.usage.input_tokens": 1}, "span"),
            ({"gen_ai.request.model": "m"}, "model"),
            ({"http.method": "GET"}, "span"),
            ({}, "span"),
        ],
    )
    def test_by_each_convention(self, attributes: dict[str, Any], kind: str) -> None:
        assert said(attributes).kind == kind

    @pytest.mark.parametrize(
        ("attributes", "kind"),
        [
            # Traceloop calls the span of a whole workflow an agent's, too.
            (
                {"traceloop.span.kind": "workflow", "gen_ai.operation.name": "invoke_agent"},
                "workflow",
            ),
            ({"langfuse.observation.type": "tool", "openinference.span.kind": "LLM"}, "tool"),
            ({"langfuse.observation.type": "span", "openinference.span.kind": "LLM"}, "model"),
            ({"gen_ai.operation.name": "unheard of", "openinference.span.kind": "TOOL"}, "tool"),
            ({"gen_ai.operation.name": "chat", "ai.operationId": "ai.generateText"}, "model"),
        ],
    )
    def test_the_first_that_is_understood_counts(
        self, attributes: dict[str, Any], kind: str
    ) -> None:
        assert said(attributes).kind == kind

    def test_claude_codes_requests_are_counted_by_its_events_not_its_spans(self) -> None:
        request = {"gen_ai.request.model": "claude-opus-5", "input_tokens": 2}
        step = said(request, name="claude_code.llm_request")
        assert (step.kind, step.input_tokens) == ("chain", None)
        assert said({}, name="claude_code.tool").kind == "tool"

    def test_a_tool_is_called_by_the_tools_name_all_else_by_the_spans(self) -> None:
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}
        assert said(tool, name="execute_tool lookup").name == "lookup"
        assert said({**MODEL, "gen_ai.tool.name": "lookup"}, name="chat").name == "chat"
        assert said(MODEL, name="").name == "model"


def raised(**attributes: str) -> SpanEvent:
    return SpanEvent("exception", build.T0, {f"exception.{k}": v for k, v in attributes.items()})


class TestStatus:
    @pytest.mark.parametrize(
        ("given", "status", "error"),
        [
            (span(), "succeeded", None),
            (span(status_code=1), "succeeded", None),
            (span(status_code=2), "failed", "failed without a message"),
            (span(status_code=2, status_message="529 上限"), "failed", "529 上限"),
            (
                span(
                    status_code=2,
                    status_message="Traceback, 200 lines",
                    events=[raised(type="ValueError", message="first"), raised(message="last")],
                ),
                "failed",
                "last",
            ),
            (
                span(status_code=2, events=[raised(type="ValueError", message="bad")]),
                "failed",
                "ValueError: bad",
            ),
            (span(status_code=2, events=[raised()]), "failed", "exception"),
            # An exception that was handled.
            (span(events=[raised(type="ValueError")]), "succeeded", None),
            (span({"error.type": "exit_status_1"}, status_code=2), "failed", "exit_status_1"),
            (span({"gen_ai.tool.status": "success"}), "succeeded", None),
            (
                span({"gen_ai.tool.status": "error", "error.type": "Timeout"}),
                "failed",
                "Timeout",
            ),
            (span({"gen_ai.task.status": "failure"}), "failed", "failed without a message"),
            (
                span(
                    {
                        "langfuse.observation.level": "ERROR",
                        "langfuse.observation.status_message": "no answer",
                    }
                ),
                "failed",
                "no answer",
            ),
            (span({"langfuse.observation.level": "WARNING"}), "succeeded", None),
            (span({"success": False, "error": "overloaded"}), "failed", "overloaded"),
            (span({"success": "false"}), "failed", "failed without a message"),
            (span({"success": [False]}), "succeeded", None),
            (
                span(status_code=2, events=[raised(type="asyncio.CancelledError")]),
                "cancelled",
                "asyncio.CancelledError",
            ),
            (
                span({"error.type": "CancelledError"}, status_code=2, status_message="stopped"),
                "cancelled",
                "stopped",
            ),
            (span({"error.type": "CancelledError"}), "succeeded", None),
        ],
    )
    def test_and_error(self, given: Span, status: str, error: str | None) -> None:
        step = step_of(given)
        assert (step.status, step.error) == (status, error)

    def test_of_a_run_is_its_roots(self) -> None:
        ended = events_of_span(span(status_code=2, status_message="no")).events[-1]
        assert ended == wire.RunEnded(build.T0 + build.SECOND, "failed", None, "no")


class TestNames:
    @pytest.mark.parametrize(
        ("name", "grouped"),
        [
            ("agent.react.update-13", "agent.react.update-*"),
            ("iteration 3", "iteration *"),
            ("step:7", "step:*"),
            ("run.6f8d2449-33ed-4c7c-82e7-5410e34ee4e6", "run.*"),
            ("task 0af7651916cd43dd8448eb211c80319c", "task *"),
            ("order 1776224988 of today", "order * of today"),
            ("running 3 tools", "running 3 tools"),
            ("room 20481 is free", "room 20481 is free"),
            ("v2", "v2"),
            ("deadbeefdeadbeef", "deadbeefdeadbeef"),
            ("行程-12", "行程-*"),
            ("", ""),
        ],
    )
    def test_grouped(self, name: str, grouped: str) -> None:
        assert names.grouped(name) == grouped

    @pytest.mark.parametrize(
        ("name", "model", "grouped"),
        [
            ("chat gpt-5", "gpt-5", "chat gpt-5"),
            ("chat gpt-5", "gpt-5-2025-08-07", "chat gpt-5"),
            ("chat gpt-5-2025-08-07", "gpt-5", "chat gpt-5-2025-08-07"),
            ("gpt-5", "gpt-5", "gpt-5"),
            ("try-2 gpt-5", "gpt-5", "try-* gpt-5"),
            ("chat gpt-5 #3", "gpt-5", "chat gpt-5 #*"),
            ("chat gpt-5", "claude-opus-5", "chat gpt-*"),
        ],
    )
    def test_a_models_version_is_no_counter(self, name: str, model: str, grouped: str) -> None:
        assert names.grouped(name, model) == grouped

    @pytest.mark.parametrize(
        ("name", "attributes", "hint"),
        [
            ("agent.react.update-13", {}, None),
            ("ChatOpenAI", {"metadata": '{"langgraph_node": "review"}'}, "review"),
            ("ChatOpenAI", {"metadata": '{"langgraph_node": '}, None),
            ("x", {"traceloop.association.properties.langgraph_node": "review"}, "review"),
            ("x", {"gen_ai.task.name": "task-7"}, "task-*"),
            ("node.ask", {"koog.node.name": "ask"}, "ask"),
            ("x", {"graph.node.id": "triage"}, "triage"),
            ("invoke_agent coder", AGENT | {"gen_ai.agent.name": "coder"}, "coder"),
            ("agent_run [hello]", {"openinference.span.kind": "AGENT"}, None),
            # An agent whose name is nothing but an id.
            (
                "invoke_agent 171105b7-59dd-49c0-9677-0b95395aa46a",
                AGENT | {"gen_ai.agent.name": "171105b7-59dd-49c0-9677-0b95395aa46a"},
                None,
            ),
        ],
    )
    def test_hint_at_a_phase(self, name: str, attributes: dict[str, Any], hint: str | None) -> None:
        step = said(attributes, name=name)
        assert (step.name, step.phase_hint) == (name, hint)

    def test_a_phase_that_is_told_needs_no_hint(self) -> None:
        for attribute in ("runtally.phase", "ai.telemetry.metadata.phase"):
            step = said(AGENT | {attribute: "implement"})
            assert (step.phase, step.phase_hint) == ("implement", None)

    @pytest.mark.parametrize(
        ("name", "attributes", "pipeline"),
        [
            ("nightly", {}, "nightly"),
            ("nightly-17", {}, "nightly-*"),
            ("", {}, "agents"),
            ("x", {"runtally.pipeline": "nightly", "gen_ai.workflow.name": "y"}, "nightly"),
            ("x", {"gen_ai.workflow.name": "nightly", "gen_ai.agent.name": "y"}, "nightly"),
            ("x", {"traceloop.workflow.name": "nightly"}, "nightly"),
            ("x", {"langfuse.trace.name": "nightly", "gen_ai.agent.name": "y"}, "nightly"),
            ("invoke_agent coder", {"gen_ai.agent.name": "coder"}, "coder"),
            ("ai.generateText", {"ai.telemetry.functionId": "coder"}, "coder"),
            ("workflow", {"workflow.name": "deer-flow"}, "deer-flow"),
            (
                "invoke_agent 171105b7-59dd-49c0-9677-0b95395aa46a",
                {"gen_ai.agent.name": "171105b7-59dd-49c0-9677-0b95395aa46a"},
                "invoke_agent *",
            ),
            ("171105b7-59dd-49c0-9677-0b95395aa46a", {}, "*"),
        ],
    )
    def test_pipeline_of_a_root(self, name: str, attributes: dict[str, Any], pipeline: str) -> None:
        started = events_of_span(span(attributes, name=name)).events[0]
        assert isinstance(started, wire.RunStarted)
        assert started.pipeline == pipeline

    def test_a_root_without_any_name_is_unnamed(self) -> None:
        started = events_of_span(span(name="", scope=Scope())).events[0]
        assert isinstance(started, wire.RunStarted)
        assert started.pipeline == "unnamed"
