"""The calls that a run makes: how long they take, and what is recorded of them."""

import argparse
import inspect
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from benchmarks.cost.virtual_time import VirtualTime, Worker

PAYLOAD_BYTES: Final = 4_096


class Pace(NamedTuple):
    """Seconds that calls take: quantiles, in the middle of each of as many equal parts."""

    model: tuple[float, ...]
    tool: tuple[float, ...]


RECORDED: Final = Pace(
    model=(
        1.06, 2.37, 3.6, 4.15, 4.63, 4.95, 5.45, 5.91, 6.89, 8.46,
        11.17, 13.31, 16.09, 19.38, 25.07, 33.92, 43.18, 49.45, 51.34, 63.27,
    ),
    tool=(
        0.0, 0.09, 0.11, 0.12, 0.14, 0.15, 0.17, 0.19, 0.2, 0.2,
        0.21, 0.22, 0.22, 0.24, 0.28, 0.34, 0.41, 0.46, 0.49, 0.77,
    ),
)  # fmt: skip
"""Of 176 model calls and 174 tool calls, all that have real times in nine public traces: 157 and
156 of them are mini-swe-agent's with DeepSeek (SWE-bench's sqlfluff-1733)."""

BRISK: Final = Pace(
    model=(
        0.25, 0.82, 0.92, 1.04, 1.06, 1.15, 1.28, 1.55, 1.71, 1.94,
        2.05, 2.05, 2.36, 2.84, 3.2, 3.29, 3.73, 3.87, 9.1,
    ),
    tool=(
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.04, 0.04,
        0.18, 0.21, 0.21, 0.23, 0.23, 1.01, 1.01, 1.94,
    ),
)  # fmt: skip
"""The same without mini-swe-agent's: Claude Agent, Koog, Microsoft Agent Framework, Pydantic AI,
Google ADK, OpenAI Agents and DeerFlow, with models that answer in seconds."""

EVERY_SECOND: Final = Pace(model=(1.0,), tool=(1.0,))


class Call(NamedTuple):
    kind: str
    seconds: float
    payload: dict[str, Any]


def calls(count: int, pace: Pace = RECORDED, seed: int = 1) -> list[Call]:
    """A model call and a tool call in turn, always the same ones."""
    rng = random.Random(seed)  # noqa: S311 - reproducible is the point
    text = inspect.getsource(argparse)
    made = []
    for number in range(count):
        kind = "tool" if number % 2 else "model"
        seconds = rng.choice(pace.tool if number % 2 else pace.model)
        made.append(Call(kind, seconds, _payload(number, rng, text)))
    return made


def _payload(number: int, rng: random.Random, text: str) -> dict[str, Any]:
    """Source code, as coding agents read it: it shrinks as such text does."""
    start = rng.randrange(len(text) - PAYLOAD_BYTES)
    content = text[start : start + PAYLOAD_BYTES]
    # Line breaks and quotation marks take two characters in JSON.
    excess = content.count("\n") + content.count('"') + content.count("\\") + 60
    return {"number": number, "messages": [{"role": "user", "content": content[:-excess]}]}


class Agents:
    """A run whose calls are made by so many agents at once, each one call after the other."""

    def __init__(self, time: VirtualTime, worker: Worker, made: list[Call], at_once: int) -> None:
        self._time = time
        self._worker = worker
        self._calls = iter(list(enumerate(made)))
        self._working = at_once
        self._run = worker.recorder.run("research", attributes={"question": "why is it slow?"})
        self._run.start()
        worker.turn()
        for number in range(at_once):
            self._next_call(f"agent-{number}")

    def _next_call(self, agent: str) -> None:
        number, call = next(self._calls, (0, None))
        if call is None:
            self._working -= 1
            if not self._working:
                self._run.result = "done"
                self._run.end()
                self._worker.turn()
            return
        model = call.kind == "model"
        step = self._run.step(
            "chat" if model else "read_file",
            phase=f"phase-{number // 250}",
            agent=agent,
            kind=call.kind,
        )
        step.start()
        if model:
            step.set(
                model="gpt-5-mini",
                provider="openai",
                input_tokens=1_000 + number,
                output_tokens=200,
                cached_tokens=900,
                cost_usd=Decimal("0.000825") + Decimal(number) / 10**7,
            )
        step.set(payload=call.payload)
        self._time.after(call.seconds, self._ended(step.end, agent))

    def _ended(self, end: Callable[[], None], agent: str) -> Callable[[], None]:
        def act() -> None:
            end()
            self._worker.turn()
            self._next_call(agent)

        return act
