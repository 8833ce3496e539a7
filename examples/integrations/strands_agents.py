# /// script
# requires-python = ">=3.11"
# dependencies = ["strands-agents[otel,openai]==1.62.0"]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""Strands: a graph of two agents, the first of them with a tool, in a span that names the run."""

from opentelemetry import trace
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.multiagent import GraphBuilder
from strands.telemetry import StrandsTelemetry

StrandsTelemetry().setup_otlp_exporter()

outages = [TimeoutError("統計局に接続できません")]


@tool
def look_up(city: str) -> str:
    """How many people live in a city."""
    if outages:
        raise outages.pop()
    return f"{city}: 1,400万人"


model = OpenAIModel(model_id="gpt-5-mini")
researcher = Agent(model, name="researcher", tools=[look_up], callback_handler=None)
writer = Agent(model, name="writer", system_prompt="Write one sentence.", callback_handler=None)

graph = GraphBuilder()
graph.add_node(researcher, "search")
graph.add_node(writer, "write")
graph.add_edge("search", "write")
graph.set_execution_timeout(60)

with trace.get_tracer("research").start_as_current_span("research"):
    answer = graph.build()("東京には何人住んでいますか？")
print(answer.results["write"].result)
