# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "pydantic-ai-slim[openai]==2.68.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""Pydantic AI: two agents one after the other, in a span of one's own."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
Agent.instrument_all()

model = OpenAIChatModel("gpt-5-mini")
researcher = Agent(model, name="researcher")
writer = Agent(model, name="writer", instructions="Write one sentence.")

outages = [ModelRetry("統計局に接続できません")]


@researcher.tool_plain
def look_up(city: str) -> str:
    """How many people live in a city."""
    if outages:
        raise outages.pop()
    return f"{city}: 1,400万人"


with trace.get_tracer("research").start_as_current_span("research"):
    found = researcher.run_sync("東京には何人住んでいますか？")
    answer = writer.run_sync(found.output)
print(answer.output)
