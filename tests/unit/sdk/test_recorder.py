import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from runtally import FileSender, Recorder, RecordingLost, wire
from runtally.spool import Spool
from tests.unit.sdk.recording import KeepingSender, events_of, until


def test_an_outage_that_fills_memory_does_not_stop_the_event_loop(
    sender: KeepingSender, recorder: Recorder
) -> None:
    sender.down = True
    recorder._outbox._memory_bytes = 500
    recorder._outbox._block_s = 0.5
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def main() -> None:
        run = recorder.run("p")
        ticking = asyncio.create_task(tick())
        for _ in range(5):
            async with run.step("s", attributes={"a": "x" * 400}):
                pass
        ticking.cancel()

    asyncio.run(main())
    assert ticks > 10
    sender.down = False
    assert recorder.close().lost > 0


def test_the_end_of_a_run_needs_no_flush(sender: KeepingSender, recorder: Recorder) -> None:
    with recorder.run("p") as run, run.step("s"):
        pass
    until(lambda: len(sender.events) == 3)
    recorder.close()


def test_a_lambda_handler_flushes_before_it_returns(
    sender: KeepingSender, recorder: Recorder
) -> None:
    @recorder.lambda_handler
    def handler(event: dict[str, object], _: object) -> object:
        with recorder.run("p", run_id="r").step("s"):
            return event["answer"]

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 20_000

    assert handler({"answer": 42}, Context()) == 42
    assert len(sender.steps) == 1
    with pytest.raises(KeyError):
        handler({}, None)
    assert [step.status for step in sender.steps] == ["succeeded", "failed"]
    recorder.close()


def test_a_handler_out_of_time_leaves_its_events_to_the_spool(tmp_path: Path) -> None:
    sender = KeepingSender()
    sender.may_answer.clear()
    recorder = Recorder(tenant_id="acme", sender=sender, spool_dir=tmp_path)

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 1_050

    @recorder.lambda_handler
    def handler(_: dict[str, object], __: object) -> None:
        with recorder.run("p", run_id="r").step("s"):
            pass

    handler({}, Context())
    assert Spool(tmp_path).counts() == (1, 1)
    sender.may_answer.set()
    assert not recorder.close()


@pytest.mark.parametrize("on_loss", ["log", "raise"])
def test_a_loss_is_raised_only_where_the_caller_chose_that(on_loss: Any) -> None:
    sender = KeepingSender()
    sender.refusing = True
    recorder = Recorder(tenant_id="acme", sender=sender, on_loss=on_loss)
    with recorder.run("p"):
        pass
    if on_loss == "log":
        assert recorder.flush().lost == 2
    else:
        with pytest.raises(RecordingLost) as caught:
            recorder.flush()
        assert caught.value.unsent.lost == 2
    assert recorder.close().lost == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"tenant_id": "no/slash", "queue_url": "https://queue"},
        {"tenant_id": "acme"},
        {"tenant_id": "acme", "queue_url": "https://queue", "sender": FileSender("x")},
        {"tenant_id": "acme", "queue_url": "https://queue", "send_after_s": 0},
        {"tenant_id": "acme", "queue_url": "https://queue", "send_after_s": 301},
        {"tenant_id": "acme", "queue_url": "https://queue", "send_after_s": float("nan")},
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(settings: Any) -> None:
    with pytest.raises(ValueError, match=r"tenant_id|queue_url|send_after_s"):
        Recorder(**settings)


def test_settings_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNTALLY_QUEUE_URL", raising=False)
    monkeypatch.setenv("RUNTALLY_TENANT_ID", "acme")
    with pytest.raises(ValueError, match="RUNTALLY_QUEUE_URL"):
        Recorder.from_environment()
    monkeypatch.setenv("RUNTALLY_QUEUE_URL", "https://queue")
    monkeypatch.setenv("RUNTALLY_BUCKET", "bucket")
    monkeypatch.setenv("RUNTALLY_SPOOL_DIR", str(tmp_path))
    monkeypatch.setenv("RUNTALLY_SEND_AFTER_S", "soon")
    with pytest.raises(ValueError, match="RUNTALLY_SEND_AFTER_S is 'soon'"):
        Recorder.from_environment()
    monkeypatch.setenv("RUNTALLY_SEND_AFTER_S", "2.5")
    recorder = Recorder.from_environment()
    assert recorder._outbox._send_after_s == 2.5
    assert recorder.tenant_id == "acme"
    assert recorder._outbox.limit_bytes == wire.CLAIM_LIMIT_BYTES


FORGETFUL = """
import sys
from runtally import FileSender, Recorder

def work():
    with Recorder(tenant_id="acme", sender=FileSender(sys.argv[1])).run("p").step("s"):
        pass

work()
"""


def test_what_nobody_flushed_is_sent_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "sent.jsonl"
    subprocess.run([sys.executable, "-c", textwrap.dedent(FORGETFUL), str(path)], check=True)  # noqa: S603
    assert [type(event) for event in events_of(path.read_bytes().strip())] == [wire.Step]


UNREACHABLE = """
import os, sys
from runtally import Recorder

class Down:
    def send_message_batch(self, **_):
        raise ConnectionError("for the test")

recorder = Recorder(tenant_id="acme", queue_url=sys.argv[2], sqs=Down(), spool_dir=sys.argv[1])
with recorder.run("p"):
    pass
recorder.flush()
os._exit(9)
"""


def test_what_a_killed_process_had_flushed_is_sent_by_the_next(tmp_path: Path) -> None:
    queue_url = "https://queue"
    command = [sys.executable, "-c", textwrap.dedent(UNREACHABLE), str(tmp_path), queue_url]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 9  # noqa: S603
    sent: list[str] = []

    class Up:
        def send_message_batch(self, **request: Any) -> dict[str, Any]:
            sent.extend(entry["MessageBody"] for entry in request["Entries"])
            return {}

    with Recorder(tenant_id="acme", queue_url="https://other", sqs=Up(), spool_dir=tmp_path):  # type: ignore[arg-type]
        pass
    assert sent == []  # messages of one queue never go to another
    with Recorder(tenant_id="acme", queue_url=queue_url, sqs=Up(), spool_dir=tmp_path):  # type: ignore[arg-type]
        pass
    kinds = [type(event) for body in sent for event in events_of(body.encode())]
    assert kinds == [wire.RunStarted, wire.RunEnded]
