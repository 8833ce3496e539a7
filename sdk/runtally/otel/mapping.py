"""Which attribute of which convention becomes which field: one table, the first hit of a row wins.

Rows begin with our own names, then follow
https://github.com/open-telemetry/semantic-conventions-genai (current names, then older ones), then
OpenInference, OpenLLMetry, Langfuse, LangSmith, the Vercel AI SDK, and what single frameworks send:
Pydantic AI, Koog, Google ADK, Strands, Monocle, Claude Code.
"""

from collections.abc import Mapping
from typing import Final

RUN_ID: Final = "runtally.run_id"
RUN_END: Final = "runtally.run_end"
PIPELINE: Final = "runtally.pipeline"

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "phase": (
        "runtally.phase",
        "ai.telemetry.metadata.phase",
    ),
    "agent": (
        "gen_ai.agent.name",
        "agent.name",
        "agent_name",
        "graph.node.id",
        "ai.telemetry.functionId",
        "agent_id",
    ),
    "session_id": (
        "gen_ai.conversation.id",
        "session.id",
        "traceloop.association.properties.session_id",
        "langfuse.session.id",
        "langsmith.metadata.session_id",
        "langsmith.trace.session_id",
        "ai.telemetry.metadata.sessionId",
        "gcp.vertex.agent.session_id",
    ),
    "model": (
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "langfuse.observation.model.name",
        "ai.response.model",
        "ai.model.id",
        "model_name",
        "model",
    ),
    "provider": (
        "gen_ai.provider.name",
        "gen_ai.system",
        "llm.provider",
        "llm.system",
        "ai.model.provider",
    ),
}
"""Texts of a step."""

NODE: Final = (
    "graph.node.name",
    "langgraph_node",
    "traceloop.association.properties.langgraph_node",
    "langfuse.observation.metadata.langgraph_node",
    "gen_ai.task.name",
    "koog.node.name",
    "graph.node.id",
)
"""The node of a workflow that a span is, or runs in. `langgraph_node` is a key of `metadata`."""

TOKENS: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "input_tokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
        "output_tokens",
    ),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.usage.input_tokens.cached",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",
        "cache_read_tokens",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
        "cache_creation_tokens",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
}

COST: Final = (
    "runtally.cost_usd",
    "gen_ai.usage.cost",
    "operation.cost",
    "gen_ai.usage.total_cost",
    "gen_ai.usage.cost_usd",
    "llm.cost.total",
    "cost_usd",
)
"""US dollars. There is no standard attribute."""

USAGE_DETAILS: Final = "langfuse.observation.usage_details"
COST_DETAILS: Final = "langfuse.observation.cost_details"
USAGE_DETAIL_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("input", "input_tokens", "prompt_tokens"),
    "output_tokens": ("output", "output_tokens", "completion_tokens"),
    "cached_tokens": (
        "input_cached_tokens",
        "input_cache_read",
        "cache_read_input_tokens",
        "prompt_details.cache_read",
    ),
    "cache_write_tokens": ("input_cache_creation", "cache_creation_input_tokens"),
    "reasoning_tokens": ("output_reasoning_tokens", "completion_details.reasoning"),
}
"""Langfuse's own: JSON, by kind of tokens; its cost likewise, with a `total`."""

WORKFLOW: Final = (
    PIPELINE,
    "gen_ai.workflow.name",
    "traceloop.workflow.name",
    "langfuse.trace.name",
    "gen_ai.agent.name",
    "agent_name",
    "ai.telemetry.functionId",
    "workflow.name",
)
"""Of a root: what its run is a run of; else the root's own name."""

KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "langfuse.observation.type": {
        "generation": "model", "agent": "agent", "tool": "tool", "chain": "chain",
        "retriever": "retriever", "evaluator": "evaluator", "embedding": "embedding",
        "guardrail": "guardrail",
    },
    "traceloop.span.kind": {
        "workflow": "workflow", "task": "chain", "agent": "agent", "tool": "tool",
    },
    "gen_ai.operation.name": {
        "chat": "model", "generate_content": "model", "text_completion": "model",
        "completion": "model", "fetch_response": "model", "embeddings": "embedding",
        "retrieval": "retriever", "execute_tool": "tool", "create_agent": "agent",
        "invoke_agent": "agent", "agent_step": "agent", "invoke_workflow": "workflow",
        "invoke_graph": "workflow", "execute_task": "chain", "execute_event_loop_cycle": "chain",
        "chain": "chain", "plan": "chain",
    },
    "openinference.span.kind": {
        "LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "chain",
        "RETRIEVER": "retriever", "RERANKER": "reranker", "EMBEDDING": "embedding",
        "GUARDRAIL": "guardrail", "EVALUATOR": "evaluator", "PROMPT": "prompt",
    },
    "ai.operationId": {
        "ai.generateText": "agent", "ai.streamText": "agent", "ai.generateObject": "agent",
        "ai.streamObject": "agent", "ai.toolCall": "tool", "ai.embed": "chain",
        "ai.embedMany": "chain", "ai.rerank": "chain",
        "ai.generateText.doGenerate": "model", "ai.streamText.doStream": "model",
        "ai.generateObject.doGenerate": "model", "ai.streamObject.doStream": "model",
        "ai.embed.doEmbed": "embedding", "ai.embedMany.doEmbed": "embedding",
        "ai.rerank.doRerank": "reranker",
    },
    "langsmith.span.kind": {
        "llm": "model", "tool": "tool", "chain": "chain", "agent": "agent",
        "retriever": "retriever", "embedding": "embedding", "prompt": "prompt",
    },
    "llm.request.type": {
        "chat": "model", "completion": "model", "embedding": "embedding", "rerank": "reranker",
    },
    "span.type": {  # Monocle: the client's own span of a model call is below the framework's
        "workflow": "workflow", "agentic.turn": "chain", "agentic.invocation": "agent",
        "agentic.tool.invocation": "tool", "inference.framework": "model",
        "inference.modelapi": "chain", "retrieval": "retriever",
    },
}  # fmt: skip
"""What says the kind of a step, in the order in which it is asked, and what its values mean."""

KINDS_BY_NAME: Final[Mapping[str, str]] = {
    # Its tokens and its cost are counted by the event `claude_code.api_request`.
    "claude_code.interaction": "agent",
    "claude_code.llm_request": "chain",
    "claude_code.tool": "tool",
    "claude_code.tool.execution": "chain",
    "claude_code.tool.blocked_on_user": "chain",
}
KINDS_BY_PRESENCE: Final = (
    ("gen_ai.tool.name", "tool"),
    ("tool.name", "tool"),
    ("agent_name", "agent"),
    ("gen_ai.request.model", "model"),
    ("llm.model_name", "model"),
)
"""For spans that do not say: the first attribute that is there."""

COUNTED_KINDS: Final = frozenset({"model", "embedding", "reranker"})
"""Kinds of steps that use tokens and cost money themselves; others repeat what theirs used."""

NODE_KINDS: Final = frozenset({"agent"})
"""Kinds whose agent's name stands for a phase where no node says it."""

EXCLUDES_CACHED: Final = ("claude_code.",)
"""Names of spans and events whose emitter counts cached tokens beside the input, not within."""

TOOL: Final = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "tool_name")
FAILED: Final[Mapping[str, frozenset[object]]] = {
    "gen_ai.tool.status": frozenset({"error"}),
    "gen_ai.task.status": frozenset({"failure", "error"}),
    "langfuse.observation.level": frozenset({"ERROR"}),
    "success": frozenset({False, "false"}),
}
"""What tells a failure where the span's own status does not."""
ERROR: Final = ("langfuse.observation.status_message", "error", "error.message", "error.type")

KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "finish_reason": (
        "gen_ai.response.finish_reasons",
        "gen_ai.response.finish_reason",
        "llm.finish_reason",
        "llm.response.finish_reason",
        "ai.response.finishReason",
        "stop_reason",
    ),
    "tool": TOOL,
    "tool_call_id": (
        "gen_ai.tool.call.id",
        "tool_call.id",
        "ai.toolCall.id",
        "tool_use_id",
    ),
    "user_id": ("user.id", "enduser.id", "langfuse.user.id"),
}
"""Attributes that stay on the step besides its fields."""

PAYLOAD: Final[Mapping[str, tuple[str, ...]]] = {
    "instructions": ("gen_ai.system_instructions",),
    "input": (
        "gen_ai.input.messages",
        "gen_ai.tool.call.arguments",
        "langfuse.observation.input",
        "llm.input_messages",
        "gen_ai.prompt",
        "input.value",
        "traceloop.entity.input",
        "gen_ai.task.input",
        "ai.prompt.messages",
        "ai.prompt",
        "ai.toolCall.args",
        "tool_arguments",
        "gcp.vertex.agent.tool_call_args",
        "gcp.vertex.agent.llm_request",
        "pydantic_ai.all_messages",
        "all_messages_events",
    ),
    "output": (
        "gen_ai.output.messages",
        "gen_ai.tool.call.result",
        "langfuse.observation.output",
        "llm.output_messages",
        "gen_ai.completion",
        "final_result",
        "output.value",
        "traceloop.entity.output",
        "gen_ai.task.output",
        "ai.response.text",
        "ai.response.object",
        "ai.toolCall.result",
        "tool_response",
        "gcp.vertex.agent.tool_response",
        "gcp.vertex.agent.llm_response",
    ),
    "tools": ("gen_ai.tool.definitions", "llm.tools", "ai.prompt.tools"),
}
"""What a span was about. A value that is JSON text is taken in as JSON."""

NUMBERED: Final = (
    "llm.input_messages",
    "llm.output_messages",
    "llm.tools",
    "gen_ai.prompt",
    "gen_ai.completion",
    "retrieval.documents",
    "embedding.embeddings",
    "reranker.input_documents",
    "reranker.output_documents",
)
"""Names that may go on with a number: lists that were flattened."""

MESSAGE_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    "gen_ai.system.message": ("input", "system"),
    "gen_ai.user.message": ("input", "user"),
    "gen_ai.assistant.message": ("input", "assistant"),
    "gen_ai.tool.message": ("input", "tool"),
    "gen_ai.choice": ("output", "assistant"),
}
"""Events that carry one message each: where it belongs, and who speaks."""

ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    **FIELDS,
    **TOKENS,
    **KEPT,
    "run_id": (RUN_ID,),
    "node": NODE,
    "cost": COST,
    "workflow": WORKFLOW,
    "error": ERROR,
}
"""All rows that are read of every span, by what they are read for."""
