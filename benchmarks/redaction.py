"""CPU time of redaction: `python -m benchmarks redaction`.

Model calls with a growing history, a megabyte of lines in all, through the managed rules; once with
texts in ASCII and once in Chinese. Beside it what encoding the same events takes, which is what an
event costs without.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from runtally import payloads, redaction, wire

_BYTES: Final = 1_000_000
_ROUNDS: Final = 10
_TEXTS: Final = {
    "ascii": "Read the failing test in tests/test_api.py, then change one thing: 3 of 17 pass.\n"
    * 6,
    "chinese": "先读 tests/test_api.py 里失败的测试，再改一处：17 个里有 3 个通过。\n" * 6,
}


def calls(text: str) -> list[tuple[wire.Step, Any]]:
    """Steps, and the payload of each as the agent hands it over."""
    made: list[tuple[wire.Step, Any]] = []
    size = 0
    while size < _BYTES:
        number = len(made)
        turns = [{"role": "user", "content": text, "n": number}] * (number % 20 + 1)
        payload = {"messages": turns, "model": "gpt-5-mini", "temperature": 0.2}
        step = wire.Step(
            step_id=f"{1_700_000_000_000_000_000 + number}-0a1b2c3d",
            name="chat gpt-5-mini",
            kind="model",
            status="succeeded",
            started_at=1_700_000_000_000_000_000 + number,
            ended_at=1_700_000_000_000_000_000 + number,
            attributes={"finish_reason": "stop", "user_id": "u-1234"},
        )
        made.append((step, payload))
        size += len(_encoded(step, payload))
    return made


def _encoded(step: wire.Step, payload: Any) -> bytes:
    raw = msgspec.Raw(payloads.encode(payload))
    return wire.encode_event(msgspec.structs.replace(step, payload=raw))


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1_000


def _encode(made: Sequence[tuple[wire.Step, Any]]) -> list[bytes]:
    return [_encoded(step, payload) for step, payload in made]


def _redact(redactor: redaction.Redactor, lines: Sequence[bytes]) -> list[bytes]:
    return [redactor.line(line) for line in lines]


def measure() -> dict[str, Any]:
    """CPU milliseconds a megabyte, in rounds that take turns, and the ratio to encoding."""
    redactor = redaction.Redactor(redaction.rules())
    figures: dict[str, Any] = {}
    for name, text in _TEXTS.items():
        made = calls(text)
        lines = _encode(made)
        megabytes = sum(map(len, lines)) / 1e6
        encoding, redacting = [], []
        for _ in range(_ROUNDS):
            encoding.append(_timed(partial(_encode, made)))
            redacting.append(_timed(partial(_redact, redactor, lines)))
        figures[name] = {
            "events": len(lines),
            "encode_ms_per_mb": round(min(encoding) / megabytes, 2),
            "redact_ms_per_mb": round(min(redacting) / megabytes, 2),
            "redact_ms_per_mb_median": round(statistics.median(redacting) / megabytes, 2),
            "ratio": round(min(redacting) / min(encoding), 1),
        }
    return figures


def table(found: dict[str, Any]) -> str:
    line = (
        "  {name:8} {redact_ms_per_mb} ms of CPU a MB at best, {redact_ms_per_mb_median} in the"
        " middle; encoding takes {encode_ms_per_mb}: {ratio} times that besides"
    )
    return "\n".join(line.format(name=name, **of) for name, of in found.items())
