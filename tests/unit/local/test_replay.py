"""What is sent, and when."""

import time
from pathlib import Path

import pytest

from local import replay
from local.commands import LocalStageError
from local.recordings import Recording, expected_totals
from local.sending import _all, _paced
from tests import build
from tests.build import SECOND, T0, ended, started, step

RECORDING = Recording(
    "acme",
    "run-1",
    tuple(
        build.body(*events).encode()
        for events in ([started()], [step(1), step(2)], [ended(at=T0 + 4 * SECOND)])
    ),
)


def test_all_is_sent_in_order_and_in_batches_that_a_queue_takes() -> None:
    batches = list(_all([RECORDING] * 7))
    assert [len(batch) for batch in batches] == [10, 10, 1]
    assert [m.body for batch in batches for m in batch] == [*RECORDING.messages] * 7
    assert [m.events for m in batches[0][:3]] == [1, 2, 1]


def test_speed_keeps_the_distances_between_messages_of_every_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    now = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    sent = [message.body for (message,) in _paced([RECORDING, RECORDING], speed=2)]
    first, second, third = RECORDING.messages
    assert sent == [first, first, second, second, third, third]
    assert slept == pytest.approx([0, 0, 1.5, 0, 0.5, 0])


def test_another_address_is_another_run_with_the_same_sums() -> None:
    other = replay.addressed(RECORDING, "other", "run-2")
    assert replay.ref_of(other) == ("other", "run-2")
    assert expected_totals(other.messages).run_id == "run-2"
    assert expected_totals(other.messages).agents_total == 2
    assert replay.ref_of(replay.addressed(RECORDING, None, "run-2")) == ("acme", "run-2")


@pytest.mark.parametrize("name", ["missing.jsonl", "text.json", "text.jsonl"])
def test_what_is_no_recording_is_told_what_one_is(name: str, tmp_path: Path) -> None:
    for text in ("text.json", "text.jsonl"):
        (tmp_path / text).write_text("no JSON\n")
    with pytest.raises(LocalStageError, match="JSON Lines"):
        replay.load(tmp_path / name)
