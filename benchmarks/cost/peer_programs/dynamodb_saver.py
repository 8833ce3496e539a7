# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "langgraph-checkpoint-aws==1.2.6",
#     "langgraph==1.2.24",
# ]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""LangGraph with DynamoDBSaver: a graph of one node that goes round once a step.

Arguments: how many steps; `growing`, a state that keeps every message, as LangGraph's own agents
have it, or `newest`, one that keeps only the last; `offload` for its S3 offload.
"""

import operator
import sys
from typing import Annotated, Any, TypedDict

from botocore.exceptions import ClientError
from counted import Counted, bucket, steps, table
from langgraph.graph import END, START, StateGraph
from langgraph_checkpoint_aws import DynamoDBSaver


class Growing(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


class Newest(TypedDict):
    messages: list[dict[str, Any]]


count, shape, *options = sys.argv[1:]
todo = steps()[: int(count)]
done: list[str] = []


def call(_: Any) -> dict[str, Any]:
    """A call's message, as it is recorded."""
    step = todo[len(done)]
    done.append(step["step_id"])
    return {"messages": [step]}


def more(_: Any) -> str:
    return END if len(done) == len(todo) else "call"


graph = StateGraph(Growing if shape == "growing" else Newest)
graph.add_node("call", call)
graph.add_edge(START, "call")
graph.add_conditional_edges("call", more)

counted = Counted()
offload = {"bucket_name": bucket()} if "offload" in options else None
saver = DynamoDBSaver(table(), session=counted.session, s3_offload_config=offload)
settings = {"configurable": {"thread_id": "run"}, "recursion_limit": 10**6}
stopped = ""
try:
    # One checkpoint is saved before the next step begins, so that it is known which one fails.
    graph.compile(checkpointer=saver).invoke({"messages": []}, settings, durability="sync")
except ClientError as error:
    stopped = f"step {len(done)} is not saved: {error}"
    done.pop()
counted.tell(len(done), stopped=stopped)
