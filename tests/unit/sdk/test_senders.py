import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from runtally import wire
from runtally.cuts import Cut, Sealed
from runtally.senders import FileSender, SqsSender
from tests.fakes.s3 import MemoryS3
from tests.unit.sdk.recording import events_of

HEAD = wire.Head(1, "acme", "run-1", 8)
REFUSED_BY_SQS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def message(size: int = 1, text: str = "x", at: int = 1) -> Sealed:
    log = wire.RunLog("1795984949123456789-9f3a1c02", at, [text * size])
    return Cut(HEAD, [wire.encode_event(log)]).seal()


class Queue:
    """send_message_batch with the limits of SQS; answers for chosen bodies are scripted."""

    def __init__(self) -> None:
        self.requests: list[list[dict[str, str]]] = []
        self.failing: dict[str, dict[str, Any]] = {}
        self.down_after = 10**6
        self.asked = 0

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        entries = request["Entries"]
        self.asked += 1
        assert request["QueueUrl"] == "https://queue"
        assert 1 <= len(entries) <= 10
        assert len({entry["Id"] for entry in entries}) == len(entries)
        assert sum(len(entry["MessageBody"].encode()) for entry in entries) <= 1_048_576
        assert not any(REFUSED_BY_SQS.search(entry["MessageBody"]) for entry in entries)
        if len(self.requests) >= self.down_after:
            raise ConnectionError("for the test")
        self.requests.append(entries)
        failed = [
            {"Id": entry["Id"], **self.failing[entry["MessageBody"]]}
            for entry in entries
            if entry["MessageBody"] in self.failing
        ]
        return {"Failed": failed} if failed else {}

    @property
    def bodies(self) -> list[str]:
        return [entry["MessageBody"] for request in self.requests for entry in request]


class ClosedBucket:
    def put_object(self, **_: object) -> None:
        raise PermissionError("for the test")


@pytest.fixture
def queue() -> Queue:
    return Queue()


def sender_to(queue: Queue, s3: object = None, bucket: str | None = None) -> SqsSender:
    return SqsSender("https://queue", bucket, sqs=cast("Any", queue), s3=cast("Any", s3))


def test_ten_messages_a_request_in_order(queue: Queue) -> None:
    messages = [message(at=number) for number in range(25)]
    delivery = sender_to(queue).send(messages)
    assert (delivery.unsent, delivery.refused, delivery.down) == ([], [], False)
    assert [len(request) for request in queue.requests] == [10, 10, 5]
    assert queue.bodies == [m.body.decode() for m in messages]
    assert {entry["MessageGroupId"] for request in queue.requests for entry in request} == {"acme"}


def test_a_request_stays_within_a_mebibyte(queue: Queue) -> None:
    sender_to(queue).send([message(400_000, at=number) for number in range(5)])
    assert [len(request) for request in queue.requests] == [2, 2, 1]


def test_no_text_makes_a_body_that_sqs_refuses(queue: Queue) -> None:
    sender_to(queue).send(
        [message(3, text) for text in ["\x00\x0b\x1f", "\ufffe", "\uffff", "\x7f"]]
    )
    assert len(queue.bodies) == 4


def test_a_body_over_the_limit_goes_through_the_bucket(queue: Queue) -> None:
    s3 = MemoryS3()
    large = message(wire.SQS_LIMIT_BYTES)
    sender_to(queue, s3, "bucket").send([message(), large, message()])
    head = wire.open_message(queue.bodies[1]).head
    assert (head.tenant_id, head.run_id, head.buckets) == ("acme", "run-1", 8)
    sha256 = hashlib.sha256(large.body).hexdigest()
    key = f"inbox/acme/run-1/{sha256}"
    assert head.claim == wire.Claim(key=key, sha256=sha256, bytes=len(large.body))
    assert s3.objects == {key: large.body}
    assert len(queue.requests) == 1


def test_a_body_at_the_limit_needs_no_bucket(queue: Queue) -> None:
    s3 = MemoryS3()
    room = wire.SQS_LIMIT_BYTES - len(message(0).body)
    sender_to(queue, s3, "bucket").send([message(room)])
    assert (len(queue.bodies[0].encode()), s3.objects) == (wire.SQS_LIMIT_BYTES, {})


def test_a_bucket_that_fails_holds_up_that_message_alone(queue: Queue) -> None:
    large = message(wire.SQS_LIMIT_BYTES)
    delivery = sender_to(queue, ClosedBucket(), "bucket").send([large, message()])
    assert (delivery.unsent, delivery.down) == ([large], False)
    assert queue.bodies == [message().body.decode()]


def test_what_the_queue_fails_is_sorted_by_whose_fault_it_is(queue: Queue) -> None:
    busy, bad, good = message(at=1), message(at=2), message(at=3)
    queue.failing[busy.body.decode()] = {"Code": "InternalError", "SenderFault": False}
    queue.failing[bad.body.decode()] = {
        "Code": "InvalidMessageContents",
        "Message": "no",
        "SenderFault": True,
    }
    delivery = sender_to(queue).send([busy, bad, good])
    assert delivery.unsent == [busy]
    assert delivery.refused == [(bad, "InvalidMessageContents: no")]
    assert not delivery.down


def test_after_a_request_that_fails_the_rest_is_not_tried(queue: Queue) -> None:
    queue.down_after = 1
    messages = [message(at=number) for number in range(35)]
    delivery = sender_to(queue).send(messages)
    assert delivery.unsent == messages[10:]
    assert delivery.down
    assert queue.asked == 2


def test_its_limit_is_the_buckets_or_the_queues() -> None:
    assert SqsSender("https://queue").limit_bytes == wire.SQS_LIMIT_BYTES
    assert SqsSender("https://queue", "bucket").limit_bytes == wire.CLAIM_LIMIT_BYTES


@pytest.mark.parametrize("name", ["deep/runs.jsonl", "runs.jsonl.gz"])
def test_a_file_gets_a_line_a_message_and_grows(tmp_path: Path, name: str) -> None:
    messages = [message(text="日\n", at=number) for number in range(3)]
    path = tmp_path / name
    FileSender(path).send(messages[:2])
    FileSender(str(path)).send(messages[2:])
    content = path.read_bytes()
    lines = (gzip.decompress(content) if name.endswith("gz") else content).splitlines()
    assert lines == [m.body for m in messages]
    assert [json.loads(line)["events"][0]["at"] for line in lines] == [0, 1, 2]
    assert len(events_of(lines[0])) == 1


def test_the_same_messages_make_the_same_gzip_file(tmp_path: Path) -> None:
    FileSender(tmp_path / "a.gz").send([message(100)])
    assert (tmp_path / "a.gz").read_bytes()[4:8] == bytes(4)  # where gzip would put the time
