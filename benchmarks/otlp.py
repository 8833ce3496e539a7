"""CPU time to decode and map a full batch of spans: `python -m benchmarks otlp`.

512 spans, which is what OpenTelemetry's batch processor sends at most, of the size that real
frameworks give them. Imports are done before, prices are looked up, nothing is sent.
"""

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from runtally.otel import messages
from runtally.otel.steps import Mapped
from tests.otlp import as_json, as_protobuf, span, traces

SPANS: Final = 512
_ROUNDS: Final = 20
_TEXT: Final = "Read the failing test, then change one thing. 先读测试，再改一处。 " * 10


def request() -> dict[str, Any]:
    """64 agents of a model call, its tool call, and so on, with their history on every call."""
    spans: list[dict[str, Any]] = []
    for first in range(1, SPANS, 8):
        spans.append(span(first, attributes=_agent()))
        for number in range(first + 1, first + 8):
            attributes = _tool() if number % 2 else _model(number - first)
            spans.append(span(number, first, kind=3, attributes=attributes))
    return traces(*spans, resource={"service.name": "agents", "telemetry.sdk.language": "python"})


def _model(turns: int) -> dict[str, Any]:
    history = [{"role": "user", "parts": [{"type": "text", "content": _TEXT}]}] * turns
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.response.model": "gpt-5-mini-2025-08-07",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.agent.name": "coder",
        "gen_ai.conversation.id": "thread-9",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.cache_read.input_tokens": 400,
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps(history[:1]),
    }


def _tool() -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.call.id": "call_2_0",
        "gen_ai.tool.call.arguments": '{"path": "a.py"}',
        "gen_ai.tool.call.result": _TEXT,
        "gen_ai.conversation.id": "thread-9",
    }


def _agent() -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "coder"}


def _work(body: bytes) -> None:
    mapped = messages.mapped(messages.read("traces", body))
    recorded = [one for one in mapped if isinstance(one, Mapped)]
    if len(recorded) != SPANS:
        raise AssertionError(f"{len(recorded)} spans of {SPANS} were mapped")


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1_000


def measure() -> dict[str, Any]:
    """CPU time of each form, in rounds that take turns, and how many times that is what
    `json.loads` takes for the same request: machines differ, and so do one machine's minutes.
    """
    wanted = request()
    as_text = as_json(wanted)
    forms = {"protobuf": as_protobuf(wanted), "json": as_text}
    works = {name: partial(_work, body) for name, body in forms.items()}
    works["json.loads"] = partial(json.loads, as_text)
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(_ROUNDS):
        for name, work in works.items():
            times[name].append(_timed(work))
    yardstick = min(times["json.loads"])
    figures: dict[str, Any] = {"spans": SPANS}
    for name, body in forms.items():
        figures[name] = {
            "bytes": len(body),
            "cpu_ms_best": round(min(times[name]), 1),
            "cpu_ms_median": round(statistics.median(times[name]), 1),
            "times_json_loads": round(min(times[name]) / yardstick, 1),
        }
    return figures


def table(found: dict[str, Any]) -> str:
    line = (
        "  {name:8}  {bytes:,} bytes  {cpu_ms_best} ms of CPU at best, {cpu_ms_median} in the"
        " middle; {times_json_loads} times json.loads"
    )
    forms = (line.format(name=name, **found[name]) for name in ("protobuf", "json"))
    return "\n".join([f"{found['spans']} spans:", *forms])
