import logging
import multiprocessing
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtally import cuts, wire
from runtally.courier import Courier
from runtally.outbox import Outbox, Unsent
from runtally.spool import Spool
from tests.unit.sdk.recording import KeepingSender, events_of, until

HEAD = wire.Head(1, "acme", "r")


def line(text: str = "x", at: int = 1) -> bytes:
    return wire.encode_event(wire.RunLog("1795984949123456789-9f3a1c02", at, [text]))


@pytest.fixture
def sender() -> Iterator[KeepingSender]:
    kept = KeepingSender()
    yield kept
    kept.may_answer.set()
    kept.down = False


def outbox_of(
    sender: KeepingSender,
    spool: Spool | None = None,
    *,
    memory: int = 10**6,
    block_s: float = 5,
    send_after_s: float = cuts.AFTER_S,
) -> Outbox:
    return Outbox(
        Courier(sender, spool), send_after_s=send_after_s, memory_bytes=memory, block_s=block_s
    )


def test_a_flush_sends_what_waits_and_returns_nothing(sender: KeepingSender) -> None:
    outbox = outbox_of(sender)
    for at in range(250):
        outbox.add(HEAD, line(at=at))
    unsent = outbox.flush(10)
    assert (unsent, bool(unsent)) == (Unsent(), False)
    logs = [event for event in sender.events if isinstance(event, wire.RunLog)]
    assert [log.at for log in logs] == list(range(250))
    outbox.close(10)


def test_what_goes_at_once_needs_no_flush(sender: KeepingSender) -> None:
    outbox = outbox_of(sender)
    outbox.add(HEAD, line(), at_once=True)
    assert sender.arrived.wait(10)
    outbox.close(10)


def test_what_waits_long_enough_needs_no_flush(sender: KeepingSender) -> None:
    outbox = outbox_of(sender, send_after_s=0.05)
    for number in (1, 2):  # the second finds the thread idle
        outbox.add(HEAD, line())
        until(lambda number=number: len(sender.events) == number)  # type: ignore[misc]
    outbox.close(10)


def test_a_flush_without_a_queue_leaves_everything_on_disk(
    sender: KeepingSender, tmp_path: Path
) -> None:
    sender.down = True
    outbox = outbox_of(sender, Spool(tmp_path))
    outbox.add(HEAD, line())
    outbox.add(HEAD, line())
    unsent = outbox.flush(10)
    assert (unsent, bool(unsent)) == (Unsent(messages=1, events=2), True)
    sender.down = False
    assert outbox.close(10) == Unsent()
    assert [len(events_of(body)) for body in sender.bodies] == [2]
    assert sender.bodies[0] == sender.attempts[0]  # sealed once


def test_a_flush_that_gets_no_answer_in_time_leaves_everything_on_disk(
    sender: KeepingSender, tmp_path: Path
) -> None:
    sender.may_answer.clear()
    outbox = outbox_of(sender, Spool(tmp_path))
    outbox.add(HEAD, line(), at_once=True)
    until(lambda: sender.attempts)  # now a request hangs
    outbox.add(HEAD, line())
    assert outbox.flush(0.05) == Unsent(messages=2, events=2)
    assert len(Spool(tmp_path).waiting()) == 2
    sender.may_answer.set()
    assert outbox.close(10) == Unsent()
    assert len(events_of(sender.bodies[-1])) == 1


def test_without_disk_and_queue_it_waits_in_memory_and_is_sent_later(sender: KeepingSender) -> None:
    sender.down = True
    outbox = outbox_of(sender)
    outbox.add(HEAD, line())
    assert outbox.flush(10) == Unsent(messages=1, events=1)
    sender.down = False
    assert outbox.close(10) == Unsent()
    assert len(sender.events) == 1


def test_after_an_outage_it_resumes_by_itself(
    sender: KeepingSender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtally.courier._FIRST_PAUSE_S", 0.02)
    sender.down = True
    outbox = outbox_of(sender, Spool(tmp_path))
    outbox.add(HEAD, line(), at_once=True)
    until(lambda: Spool(tmp_path).waiting())
    sender.down = False
    assert sender.arrived.wait(10)
    outbox.close(10)


def test_what_others_left_is_sent_without_a_flush(sender: KeepingSender, tmp_path: Path) -> None:
    left = Spool(tmp_path)
    for at in range(35):
        left.put(cuts.Cut(HEAD, [line(at=at)]).seal())
    outbox = outbox_of(sender, Spool(tmp_path))
    outbox.add(HEAD, line(at=99), at_once=True)
    until(lambda: len(sender.events) == 36)
    logs = [event.at for event in sender.events if isinstance(event, wire.RunLog)]
    assert logs == [99, *range(35)]
    outbox.close(10)


def test_full_memory_makes_the_agent_wait_until_there_is_room(sender: KeepingSender) -> None:
    sender.may_answer.clear()
    outbox = outbox_of(sender, memory=500, block_s=60)
    outbox.add(HEAD, line("x" * 800), at_once=True)
    until(lambda: sender.attempts)
    waiting = threading.Thread(target=outbox.add, args=(HEAD, line("y" * 800)))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    sender.may_answer.set()
    waiting.join(10)
    assert not waiting.is_alive()
    assert outbox.close(10) == Unsent()
    assert len(sender.events) == 2


def test_full_memory_does_not_wait_for_the_time_of_a_message(sender: KeepingSender) -> None:
    outbox = outbox_of(sender, memory=500, block_s=60, send_after_s=600)
    for _ in range(3):
        outbox.add(HEAD, line("x" * 800))
    assert len(sender.events) == 2
    outbox.close(10)


def test_an_outage_beyond_all_room_costs_one_wait_and_every_loss_is_counted(
    sender: KeepingSender, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sender.down = True
    outbox = outbox_of(sender, Spool(tmp_path, max_bytes=1_000), memory=500, block_s=0.3)
    started = time.monotonic()
    for _ in range(20):
        outbox.add(HEAD, line("x" * 600), at_once=True)
    took = time.monotonic() - started
    assert 0.3 <= took < 3  # not twenty times 0.3
    unsent = outbox.flush(10)
    assert unsent.lost > 0
    assert unsent.lost + unsent.events == 20
    assert any(r.levelno == logging.ERROR and "lost" in r.message for r in caplog.records)
    sender.down = False
    assert outbox.close(10) == Unsent()  # a loss is reported once
    assert len(sender.events) == unsent.events


def test_an_event_larger_than_memory_is_taken_when_there_is_nothing_else(
    sender: KeepingSender,
) -> None:
    outbox = outbox_of(sender, memory=100, block_s=0)
    outbox.add(HEAD, line("x" * 1_000))
    assert outbox.close(10) == Unsent()
    assert len(sender.events) == 1


def test_what_comes_after_closing_is_still_sent(sender: KeepingSender) -> None:
    others = set(threading.enumerate())
    outbox = outbox_of(sender)
    outbox.add(HEAD, line())
    outbox.close(10)
    until(lambda: not set(threading.enumerate()) - others)
    outbox.add(HEAD, line(), at_once=True)
    until(lambda: len(sender.events) == 2)
    outbox.close(10)


def test_at_shutdown_when_no_thread_starts_the_flush_sends_by_itself(
    sender: KeepingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    outbox = outbox_of(sender)
    outbox.add(HEAD, line())
    assert outbox.flush(10) == Unsent()
    assert len(sender.events) == 1


def test_what_closing_could_not_send_goes_on_being_tried(
    sender: KeepingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtally.courier._FIRST_PAUSE_S", 0.02)
    sender.down = True
    outbox = outbox_of(sender)
    outbox.add(HEAD, line())
    assert outbox.close(10) == Unsent(messages=1, events=1)
    sender.down = False
    until(lambda: sender.events)


def test_a_bug_in_delivering_does_not_end_delivering(
    sender: KeepingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtally.courier._FIRST_PAUSE_S", 0.02)
    courier = Courier(sender, None)
    outbox = Outbox(courier)
    good, failed = courier.deliver, threading.Event()

    def fail_once(messages: list[cuts.Sealed]) -> list[cuts.Sealed]:
        courier.deliver = good  # type: ignore[method-assign]
        failed.set()
        raise RuntimeError("for the test")

    courier.deliver = fail_once  # type: ignore[method-assign]
    outbox.add(HEAD, line(), at_once=True)
    assert failed.wait(10)
    assert sender.arrived.wait(10)
    outbox.close(10)


def _in_child(outbox: Outbox, path: Path) -> None:
    outbox.add(HEAD, line("child"))
    path.write_text(repr(outbox.close(10)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_sends_its_own_events_and_leaves_the_parents_to_the_parent(
    tmp_path: Path,
) -> None:
    from runtally import FileSender  # noqa: PLC0415 - the file is what both can write

    outbox = Outbox(Courier(FileSender(tmp_path / "sent.jsonl"), None))
    outbox.add(HEAD, line("parent"))
    child = multiprocessing.get_context("fork").Process(
        target=_in_child, args=(outbox, tmp_path / "report")
    )
    child.start()
    child.join(20)
    assert (tmp_path / "report").read_text() == repr(Unsent())
    assert outbox.close(10) == Unsent()
    bodies = (tmp_path / "sent.jsonl").read_bytes().splitlines()
    logs = [event for body in bodies for event in events_of(body)]
    assert [log.lines for log in logs if isinstance(log, wire.RunLog)] == [["child"], ["parent"]]
