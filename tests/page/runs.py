"""The runs that the tests of the page look at, as recordings to be sent."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from functions.core.keys import RunRef
from local import replay
from local.paths import RECORDINGS
from local.recordings import Recording
from runtally import wire
from tests import build
from tests.build import SECOND

MANY = 45
TINY = Decimal("0.000009")

EVIL_NAME = "<img src=x onerror=alert(2)> \u202egnp.exe\u202c \ufffd 你好 🌍"
EVIL_LINE = "<script>alert(1)</script>"
LONG_LINE = "A" * 1_048_576


def samples() -> list[Recording]:
    """The demo's runs, as if they had ended now."""
    files = sorted(RECORDINGS.glob("*.jsonl.gz"))
    return [replay.ending_now(run) for file in files for run in replay.load(file)]


def recording(tenant_id: str, run_id: str, *messages: Iterable[wire.Event]) -> Recording:
    run = RunRef(tenant_id, run_id)
    return Recording(*run, tuple(build.body(*events, run=run).encode() for events in messages))


def many(now: int) -> list[Recording]:
    """Runs of a call each, a minute apart: every fifth failed, two pipelines by turns."""
    return [
        recording(
            "many",
            f"run-{n:03}",
            [
                build.started(now - n * 60 * SECOND, f"pipeline-{n % 2}"),
                build.step(n),
                build.ended(now - n * 60 * SECOND + SECOND, "succeeded" if n % 5 else "failed"),
            ],
        )
        for n in range(MANY)
    ]


def odd(now: int) -> list[Recording]:
    return [costs(now), hostile(now)]


def costs(now: int) -> Recording:
    """A call that cost next to nothing, and one of which nobody knows what it cost."""
    known = build.step(1, phase="known", name="cheap", cost_usd=f"{TINY:f}")
    unknown = build.step(2, phase="unknown", name="free?")
    begun, ended = build.started(now, "costs"), build.ended(now + SECOND)
    return recording("odd", "costs", [begun, known, unknown, ended])


def hostile(now: int) -> Recording:
    """Every text that a worker chooses is out to harm the page."""
    evil = {
        "messages": [
            {"role": EVIL_NAME, "content": EVIL_LINE},
            {"role": "assistant", "content": [{"type": "text", "text": EVIL_NAME}]},
            {"role": "tool", "content": "a\x00b\x1b[31mred\x7f\ufffd \u2066hidden\u2069"},
        ],
        "__proto__": {"polluted": True},
        "constructor": "javascript:alert(4)",
    }
    named = {"name": EVIL_NAME, "agent": EVIL_LINE, "model": EVIL_NAME, "phase": EVIL_NAME}
    calls: Sequence[wire.Event] = [
        build.step(1, **named, status="failed", error=EVIL_LINE * 20, payload=evil),
        build.step(2, name="one long line", kind="tool", payload={"output": LONG_LINE}),
    ]
    first = build.started(now, EVIL_NAME, attributes={EVIL_NAME: EVIL_LINE})
    last = build.ended(now + SECOND, "failed", error=EVIL_LINE, result=EVIL_NAME + EVIL_LINE)
    return recording(
        "odd", "hostile", [first, calls[0]], calls[1:], [build.log(3, EVIL_LINE, EVIL_NAME), last]
    )
