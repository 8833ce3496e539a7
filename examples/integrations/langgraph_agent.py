# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "langgraph==1.2.24",
#     "langchain-openai==1.7.4",
#     "openinference-instrumentation-langchain==0.1.80",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""LangGraph: two nodes, the first of them a ReAct agent with a tool."""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)

outages = [TimeoutError("統計局に接続できません")]


@tool
def look_up(city: str) -> str:
    """How many people live in a city."""
    if outages:
        raise outages.pop()
    return f"{city}: 1,400万人"


model = ChatOpenAI(model="gpt-5-mini")


def ask(state: MessagesState) -> MessagesState:
    return {"messages": [model.bind_tools([look_up]).invoke(state["messages"])]}


def write(state: MessagesState) -> MessagesState:
    found = state["messages"][-1].content
    return {"messages": [model.invoke([("system", "Write one sentence."), ("user", found)])]}


search = StateGraph(MessagesState)
search.add_node("ask", ask)
search.add_node("tools", ToolNode([look_up], handle_tool_errors=True))
search.add_edge(START, "ask")
search.add_conditional_edges("ask", tools_condition)
search.add_edge("tools", "ask")

graph = StateGraph(MessagesState)
graph.add_node("search", search.compile())
graph.add_node("write", write)
graph.add_edge(START, "search")
graph.add_edge("search", "write")
graph.add_edge("write", END)
research = graph.compile(name="research")

answer = research.invoke({"messages": [("user", "東京には何人住んでいますか？")]})
print(answer["messages"][-1].content)
