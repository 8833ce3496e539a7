"""What the recorded samples must come to, run by run in the order in which the runs begin.

Read from the README and the outlines next to the samples, and for the exports from the raw JSON;
none of it comes from the code under test.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from functions.core.phases import NO_PHASE
from tests.otel.figures import Figures, Tokens

_PYDANTIC_AI: Final = (
    Figures(
        "planner_agent",
        "succeeded",
        steps=9,
        failed=1,
        depth=4,
        phases={
            NO_PHASE: 1,
            "chat gpt-5-mini": 3,
            "lookup": 2,
            "ask_weather": 1,
            "weather_agent": 2,
        },
        models=frozenset({"gpt-5-mini", "claude-sonnet-4-5"}),
        tokens=Tokens(3600, 160, 1200, cache_write=80),
        cost=Decimal("0.0032175"),
    ),
    Figures(
        "bad_agent",
        "failed",
        steps=2,
        failed=2,
        depth=2,
        phases={NO_PHASE: 1, "chat gpt-5-mini": 1},
        models=frozenset({"gpt-5-mini"}),
    ),
)
_STRANDS: Final = (
    Figures(
        "invoke_graph",
        "succeeded",
        steps=17,
        failed=1,
        depth=4,
        phases={NO_PHASE: 1, "planner": 3, "coder": 10, "reviewer": 3},
        models=frozenset({"stub.plan-v1", "stub.code-v1", "stub.review-v1"}),
        tokens=Tokens(6000, 425, 3000, cache_write=320),
    ),
    Figures(
        "failing",
        "failed",
        steps=3,
        failed=3,
        depth=3,
        phases={NO_PHASE: 1, "execute_event_loop_cycle": 2},
        models=frozenset({"stub.fail-v1"}),
    ),
)
_ANSWERED: Final = frozenset({"gpt-5-mini-2025-08-07"})
_ASKED: Final = frozenset({"gpt-5-mini"})

CAPTURES: Final[Mapping[str, Sequence[Figures]]] = {
    "ai-sdk-json": (
        Figures(
            "coder",
            "succeeded",
            steps=5,
            failed=1,
            depth=2,
            phases={"implement": 5},
            models=frozenset({"claude-sonnet-4-5"}),
            tokens=Tokens(2000, 100, 800, reasoning=24),
        ),
        Figures(
            "coder",
            "failed",
            steps=2,
            failed=2,
            depth=2,
            phases={"implement": 2},
            models=frozenset({"claude-sonnet-4-5"}),
        ),
    ),
    "langgraph-genai": (
        Figures(
            "fix-bug workflow",
            "succeeded",
            steps=8,
            failed=0,
            depth=3,
            phases={NO_PHASE: 1, "chat gpt-5-mini": 2, "coder_agent": 5},
            models=_ANSWERED,
            tokens=Tokens(4010, 200, 1600, reasoning=48),
        ),
        Figures(
            "failing_graph",
            "failed",
            steps=2,
            failed=2,
            depth=2,
            phases={NO_PHASE: 1, "chat gpt-5-mini": 1},
            models=_ASKED,
        ),
    ),
    "langgraph-openinference": (
        Figures(
            "fix-bug workflow",
            "succeeded",
            steps=15,
            failed=0,
            depth=5,
            phases={NO_PHASE: 1, "plan": 2, "implement": 10, "review": 2},
            models=_ANSWERED,
            tokens=Tokens(4010, 200, 1600, reasoning=48),
        ),
        Figures(
            "failing_graph",
            "failed",
            steps=3,
            failed=3,
            depth=3,
            phases={NO_PHASE: 1, "explode": 2},
            models=_ASKED,
        ),
    ),
    "langgraph-traceloop": (
        # Compiling the inner agent is a trace of its own.
        Figures("coder_agent", "succeeded", steps=1, failed=0, depth=1, phases={NO_PHASE: 1}),
        Figures(
            "fix-bug workflow",
            "succeeded",
            steps=17,
            failed=0,
            depth=6,
            phases={
                NO_PHASE: 1,
                "fix-bug workflow.workflow": 1,
                "plan": 2,
                "implement": 11,
                "review": 2,
            },
            models=_ANSWERED,
            tokens=Tokens(4010, 200, 1600),
        ),
        Figures(
            "failing_graph",
            "failed",
            steps=4,
            failed=4,
            depth=4,
            phases={NO_PHASE: 1, "failing_graph.workflow": 1, "explode": 2},
            models=_ASKED,
        ),
    ),
    "oi-long": (
        Figures(
            "ChatOpenAI",
            "succeeded",
            steps=1,
            failed=0,
            depth=1,
            phases={NO_PHASE: 1},
            models=_ANSWERED,
            tokens=Tokens(1001, 50, 400, reasoning=12),
        ),
    ),
    # Here and in the next, the second root has no error although all below it failed.
    "openai-agents-genai": (
        Figures(
            "fix-bug workflow",
            "succeeded",
            steps=5,
            failed=1,
            depth=3,
            phases={NO_PHASE: 1, "triage": 1, "coder": 3},
        ),
        Figures(
            "failing workflow",
            "succeeded",
            steps=2,
            failed=1,
            depth=2,
            phases={NO_PHASE: 1, "coder": 1},
        ),
    ),
    "openai-agents-openinference": (
        Figures(
            "fix-bug workflow",
            "succeeded",
            steps=14,
            failed=1,
            depth=6,
            phases={NO_PHASE: 1, "phase: implement": 2, "triage": 4, "coder": 7},
            models=_ASKED,
            tokens=Tokens(3006, 150),
        ),
        Figures(
            "failing workflow",
            "succeeded",
            steps=5,
            failed=2,
            depth=5,
            phases={NO_PHASE: 1, "failing workflow": 1, "coder": 3},
            models=_ASKED,
        ),
    ),
    "pydantic-ai": _PYDANTIC_AI,
    "pydantic-ai-split-retry": _PYDANTIC_AI,
    "strands": _STRANDS,
    "strands-latest-gzip": _STRANDS,
}

_MINI_SWE: Final = Figures(
    "mini-swe-agent",
    "succeeded",
    steps=314,
    failed=19,
    depth=2,
    phases={NO_PHASE: 1, "chat deepseek-chat": 157, "bash": 156},
    models=frozenset({"deepseek-chat"}),
    tokens=Tokens(8_719_118, 61_187, 8_674_304),
    cost=Decimal("0.281126972"),
)
_DEER_FLOW_CJK: Final = Figures(
    "deer-flow",
    "succeeded",
    steps=29,
    failed=0,
    depth=3,
    phases={NO_PHASE: 1, "coordinator": 2, "planner": 2, "researcher": 22, "reporter": 2},
)

DERIVED: Final[Mapping[str, Figures]] = {
    "mini-swe.delta.pb.gz": _MINI_SWE,
    "mini-swe.delta.json.gz": _MINI_SWE,
    # Three steps of the same run whose root is not in the request.
    "mini-swe.last3-full-history.pb.gz": Figures(
        "",
        "",
        steps=3,
        failed=0,
        depth=1,
        phases={"chat deepseek-chat": 3},
        models=frozenset({"deepseek-chat"}),
        tokens=Tokens(299_828, 814, 299_200),
        cost=Decimal("0.00889532"),
    ),
    "deerflow-cjk.pb.gz": _DEER_FLOW_CJK,
    "deerflow-cjk.json.gz": _DEER_FLOW_CJK,
    "deerflow-rag.pb.gz": Figures(
        "deer-flow",
        "succeeded",
        steps=23,
        failed=0,
        depth=3,
        phases={NO_PHASE: 1, "coordinator": 2, "planner": 2, "researcher": 16, "reporter": 2},
    ),
}


class Export(NamedTuple):
    figures: Figures
    names: int
    """Distinct ones of steps."""
    hints: frozenset[str]
    """Nodes and named agents."""
    kinds: Mapping[str, int]
    session_id: str | None = None
    repeated: Sequence[tuple[int, int]] = ()
    """Input and output tokens that other steps than model calls tell, and that are not counted."""


LANGFUSE: Final[Mapping[str, Export]] = {
    "genai/langfuse-export.claude-agent-2025-12-22.json": Export(
        Figures(
            "claude.conversation",
            "succeeded",
            steps=7,
            failed=0,
            depth=2,
            phases={NO_PHASE: 1, "claude.assistant.turn": 4, "mcp__weather__get_weather": 2},
            models=frozenset({"claude-sonnet-4-5-20250929"}),
            tokens=Tokens(34, 232),
        ),
        names=3,
        hints=frozenset(),
        kinds={"chain": 1, "model": 4, "tool": 2},
        session_id="6fb9b4b8-dd4d-4d41-8d4f-c0c0799a6559",
    ),
    "genai/langfuse-export.koog-2025-08-26.json": Export(
        Figures(
            "agent.*",
            "succeeded",
            steps=11,
            failed=0,
            depth=4,
            phases={
                NO_PHASE: 1,
                "run.*": 1,
                "__start__": 1,
                "nodeCallLLM": 2,
                "nodeExecuteTool": 3,
                "nodeSendToolResult": 2,
                "__finish__": 1,
            },
            models=frozenset({"gpt-4o"}),
            tokens=Tokens(215, 125),
        ),
        names=10,
        hints=frozenset(
            {
                "__start__",
                "nodeCallLLM",
                "nodeExecuteTool",
                "nodeSendToolResult",
                "__finish__",
            }
        ),
        kinds={"agent": 2, "span": 5, "model": 2, "tool": 2},
    ),
    "genai/langfuse-export.microsoft-agent-2025-12-17.json": Export(
        Figures(
            "invoke_agent *",
            "succeeded",
            steps=4,
            failed=0,
            depth=2,
            phases={NO_PHASE: 1, "chat gpt-5-mini": 2, "get_weather": 1},
            models=_ANSWERED,
            tokens=Tokens(293, 106),
        ),
        names=3,
        hints=frozenset(),
        kinds={"agent": 1, "model": 2, "tool": 1},
        repeated=[(44, 180)],
    ),
    "genai/langfuse-export.pydantic-ai-tools-2025-12-04.json": Export(
        Figures(
            "joke-generator",
            "succeeded",
            steps=12,
            failed=0,
            depth=4,
            phases={NO_PHASE: 1, "joke_agent": 9, "evaluator_agent": 2},
            models=frozenset({"gpt-4o-mini-2024-07-18"}),
            tokens=Tokens(1315, 209),
            cost=Decimal("0.00032265"),
        ),
        names=8,
        hints=frozenset({"joke_agent", "evaluator_agent"}),
        kinds={"span": 2, "agent": 3, "model": 4, "tool": 3},
        repeated=[(682, 126), (502, 14), (131, 69)],
    ),
    "openinference/langfuse-export.beeai-2025-08-01.json": Export(
        Figures(
            "beeai-framework-main",
            "succeeded",
            steps=29,
            failed=0,
            depth=4,
            phases={NO_PHASE: 1, "iteration-*": 28},
            models=frozenset({"gpt-4o-mini"}),
            tokens=Tokens(5542, 0),
        ),
        names=29,
        hints=frozenset(),
        kinds={"agent": 18, "chain": 3, "tool": 3, "model": 5},
    ),
    "openinference/langfuse-export.google-adk-2025-08-28.json": Export(
        Figures(
            "invocation [hello_app]",
            "succeeded",
            steps=5,
            failed=0,
            depth=4,
            phases={NO_PHASE: 1, "agent_run [hello_agent]": 4},
            models=frozenset({"gemini-2.0-flash"}),
            tokens=Tokens(67, 9),
        ),
        names=4,
        hints=frozenset(),
        kinds={"chain": 1, "agent": 1, "model": 2, "tool": 1},
        session_id="demo-session",
    ),
    "openinference/langfuse-export.openai-agents-2025-09-30.json": Export(
        Figures(
            "Agent workflow",
            "succeeded",
            steps=5,
            failed=0,
            depth=3,
            phases={NO_PHASE: 1, "Hello world": 4},
            models=frozenset({"gpt-4.1-2025-04-14"}),
            tokens=Tokens(140, 44),
        ),
        names=4,
        hints=frozenset({"Hello world"}),
        kinds={"agent": 2, "model": 2, "tool": 1},
    ),
}
