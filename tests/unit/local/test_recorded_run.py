"""How a converted run is cut into messages."""

import json

from msgspec import Raw

from local.trajectories import RecordedRun
from local.trajectories.fields import MADE_UP_START
from runtally import wire


def test_bodies_stay_within_256_kb_as_sealed_unless_one_event_is_larger() -> None:
    # U+FFFE takes 3 bytes in the event and 6 in the body: 60 KB each, four to a message.
    sizes = [len(body) for body in recorded(40, "\ufffe" * 10_000).messages(100)]
    assert len(sizes) == 10
    assert max(sizes) <= 256 * 1024
    start, *alone = recorded(2, "x" * 300_000).messages(100)
    assert b"run.started" in start
    assert [len(body) > 300_000 for body in alone] == [True, True]


def recorded(count: int, text: str = "") -> RecordedRun:
    start = wire.RunStarted(at=MADE_UP_START, pipeline="made-up")
    steps = [
        wire.Step(
            step_id=f"{MADE_UP_START + index}-00000000",
            kind="tool",
            status="succeeded",
            started_at=MADE_UP_START,
            ended_at=MADE_UP_START,
            payload=Raw(json.dumps(text, ensure_ascii=False).encode()),
        )
        for index in range(count)
    ]
    return RecordedRun("made-up", "demo", (start, *steps))
