# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "openai-agents==0.24.0",
#     "openinference-instrumentation-openai-agents==2.6.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""OpenAI Agents: two agents one after the other, in one trace of the SDK."""

from agents import Agent, Runner, function_tool, set_default_openai_api, trace
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)  # instead of OpenAI's own tracing

set_default_openai_api("chat_completions")
outages = [TimeoutError("統計局に接続できません")]


@function_tool
def look_up(city: str) -> str:
    """How many people live in a city."""
    if outages:
        raise outages.pop()
    return f"{city}: 1,400万人"


researcher = Agent("researcher", tools=[look_up], model="gpt-5-mini")
writer = Agent("writer", instructions="Write one sentence.", model="gpt-5-mini")

with trace("research"):
    found = Runner.run_sync(researcher, "東京には何人住んでいますか？")
    answer = Runner.run_sync(writer, found.final_output)
print(answer.final_output)
