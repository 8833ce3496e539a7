"""SQS in memory: standard queues by URL, at the interface of boto3's client."""

import re
from dataclasses import dataclass, field
from typing import Any

from runtally.wire import SQS_LIMIT_BYTES
from tests.fakes.calls import Calls, client_error

_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Sent:
    """One message. `attributes` are plain strings."""

    message_id: str
    body: str
    attributes: dict[str, str] = field(default_factory=dict)
    receives: int = 0


class MemorySQS:
    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls or Calls()
        self.queues: dict[str, list[Sent]] = {}
        self._sent = 0

    def send_message(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            given = request.get("MessageAttributes", {})
            attributes = {name: value["StringValue"] for name, value in given.items()}
            sent = self._accept(request["QueueUrl"], request["MessageBody"], attributes)
            return {"MessageId": sent.message_id}

        return self.calls("sqs.send_message", apply)

    def _accept(self, queue_url: str, body: str, attributes: dict[str, str]) -> Sent:
        size = len(body.encode("utf-8", "surrogatepass"))
        for name, value in attributes.items():
            size += len(name) + len("String") + len(value.encode())
            if not value or _REFUSED.search(value):
                raise client_error("SendMessage", "InvalidParameterValue", name)
        if _REFUSED.search(body):
            raise client_error("SendMessage", "InvalidMessageContents")
        if not 0 < size <= SQS_LIMIT_BYTES:
            raise client_error("SendMessage", "InvalidParameterValue", "message too long")
        self._sent += 1
        sent = Sent(f"m-{self._sent}", body, attributes)
        self.queues.setdefault(queue_url, []).append(sent)
        return sent


@dataclass
class MemoryQueue:
    """A queue as its event source sees it: what is received too often is dead-lettered."""

    max_receives: int
    waiting: list[Sent] = field(default_factory=list)
    dead: list[Sent] = field(default_factory=list)

    def receive(self, most: int) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        while self.waiting and len(records) < most:
            sent = self.waiting.pop(0)
            if sent.receives >= self.max_receives:
                self.dead.append(sent)
                continue
            sent.receives += 1
            records.append({"messageId": sent.message_id, "body": sent.body, "sent": sent})
        return records

    def delete(self, record: dict[str, Any]) -> None:
        """Nothing to do: it is no longer waiting."""

    def release(self, record: dict[str, Any]) -> None:
        self.waiting.append(record["sent"])
