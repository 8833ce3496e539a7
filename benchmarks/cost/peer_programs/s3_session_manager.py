# /// script
# requires-python = ">=3.11"
# dependencies = ["strands-agents==1.62.0"]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""Strands with S3SessionManager: a scripted model that calls a tool ten times an invocation.

Argument: how many steps. A step is a call of the model or of the tool; each leaves a message.
"""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from counted import Counted, bucket, steps
from strands import Agent, tool
from strands.models import Model
from strands.session.s3_session_manager import S3SessionManager

TOOL_CALLS = 10
"""Of an invocation; a model call more answers."""

todo = steps()[: int(sys.argv[1])]
done: list[str] = []


def content() -> str:
    """What the next call's payload says; one more step."""
    step = todo[len(done)]
    done.append(step["step_id"])
    return json.dumps(step)


@tool
def read_file() -> str:
    """The next file."""
    return content()


class Scripted(Model):
    def __init__(self) -> None:
        self.calls = 0

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.calls += 1
        answers = self.calls % (TOOL_CALLS + 1) == 0
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": content()}}}
        yield {"contentBlockStop": {}}
        if not answers:
            use = {"name": "read_file", "toolUseId": f"call-{self.calls}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if answers else "tool_use"}}


counted = Counted()
manager = S3SessionManager("run", bucket(), boto_session=counted.session)
agent = Agent(Scripted(), tools=[read_file], session_manager=manager, callback_handler=None)
while len(todo) - len(done) > 2 * TOOL_CALLS:
    agent("go on")
counted.tell(len(done))
