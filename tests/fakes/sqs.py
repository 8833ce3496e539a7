"""SQS in memory: standard queues by URL, at the interface of boto3's client."""

import re
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from runtally.wire import SQS_LIMIT_BYTES
from tests.fakes.calls import Calls, client_error
from tests.fakes.clock import MemoryClock

_ARN = "arn:memory:sqs:"
_LONGEST_DELAY_S = 900
_PREFIX = "AWS.SimpleQueueService."  # of codes that are older than the JSON protocol
_REFUSED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Sent:
    """One message. `attributes` are plain strings."""

    message_id: str
    body: str
    attributes: dict[str, str] = field(default_factory=dict)
    group: str = ""
    receives: int = 0
    visible_at: int = 0
    receipt: str = ""
    sent_at: int = 0


@dataclass(eq=False)
class MoveTask:
    """One StartMessageMoveTask; `to_move` is what was there when it began."""

    source: str
    destination: str
    to_move: int
    moved: int = 0
    status: str = "RUNNING"


class MemorySQS:
    """`redrives` says where a queue's messages go that were received so many times in vain.

    A task that moves messages goes on, ten at a time, whenever somebody asks how far it is.
    """

    def __init__(self, calls: Calls | None = None, clock: MemoryClock | None = None) -> None:
        self.calls = calls or Calls()
        self.clock = clock or MemoryClock()
        self.queues: dict[str, list[Sent]] = {}
        self.redrives: dict[str, tuple[int, str]] = {}
        self.move_tasks: list[MoveTask] = []
        self._sent = 0

    def close(self) -> None:
        """There are no connections to close."""

    def create_queue(self, **request: Any) -> dict[str, Any]:
        """The URL to use; a queue is there as soon as something is sent to it."""
        return {"QueueUrl": f"memory://{request['QueueName']}"}

    def send_message(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            given = request.get("MessageAttributes", {})
            attributes = {name: value["StringValue"] for name, value in given.items()}
            sent = self._accept(request["QueueUrl"], request["MessageBody"], attributes)
            sent.group = request.get("MessageGroupId", "")
            self._hide(sent, _delay_of(request))
            return {"MessageId": sent.message_id}

        return self.calls("sqs.send_message", apply)

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            entries = request["Entries"]
            if wrong := _wrong_with(entries):
                raise client_error("SendMessageBatch", f"{_PREFIX}{wrong}")
            failed = []
            for entry in entries:
                try:
                    self._accept(request["QueueUrl"], entry["MessageBody"], {})
                except ClientError as error:
                    code = error.response["Error"]["Code"]
                    failed.append({"Id": entry["Id"], "Code": code, "SenderFault": True})
            return {"Failed": failed} if failed else {}

        return self.calls("sqs.send_message_batch", apply)

    def receive_message(self, **request: Any) -> dict[str, Any]:
        """Answers at once, also when there is nothing to receive."""

        def apply() -> dict[str, Any]:
            url = request["QueueUrl"]
            if not 0 < request.get("MaxNumberOfMessages", 1) <= 10:
                raise client_error("ReceiveMessage", "InvalidParameterValue")
            self._redrive(url)
            visible = [m for m in self.queues.get(url, []) if m.visible_at <= self.clock.now_ns()]
            received = visible[: request.get("MaxNumberOfMessages", 1)]
            for sent in received:
                sent.receives += 1
                sent.receipt = f"{sent.message_id}-{sent.receives}"
                self._hide(sent, request["VisibilityTimeout"])
            wanted = request.get("MessageSystemAttributeNames", [])
            asked = request.get("MessageAttributeNames", [])
            messages = [_as_received(sent, wanted, asked) for sent in received]
            return {"Messages": messages} if messages else {}

        return self.calls("sqs.receive_message", apply)

    def delete_message(self, **request: Any) -> dict[str, Any]:
        """A receipt that is not the last one is accepted and deletes nothing."""

        def apply() -> dict[str, Any]:
            queue = self.queues[request["QueueUrl"]]
            queue[:] = [sent for sent in queue if sent.receipt != request["ReceiptHandle"]]
            return {}

        return self.calls("sqs.delete_message", apply)

    def change_message_visibility(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            operation = "ChangeMessageVisibility"
            receipt = request["ReceiptHandle"]
            found = [m for m in self.queues[request["QueueUrl"]] if m.receipt == receipt]
            if not found:
                raise client_error(operation, "InvalidParameterValue", "message does not exist")
            if found[0].visible_at <= self.clock.now_ns():
                raise client_error(operation, f"{_PREFIX}MessageNotInflight")
            self._hide(found[0], request["VisibilityTimeout"])
            return {}

        return self.calls("sqs.change_message_visibility", apply)

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        """Entries with a receipt that is not the last one fail alone."""

        def apply() -> dict[str, Any]:
            entries = request["Entries"]
            if not 0 < len(entries) <= 10:
                raise client_error("ChangeMessageVisibilityBatch", f"{_PREFIX}EmptyBatchRequest")
            by_receipt = {m.receipt: m for m in self.queues.get(request["QueueUrl"], [])}
            failed = []
            for entry in entries:
                found = by_receipt.get(entry["ReceiptHandle"])
                if found and found.visible_at > self.clock.now_ns():
                    self._hide(found, entry["VisibilityTimeout"])
                else:
                    code = f"{_PREFIX}MessageNotInflight" if found else "InvalidParameterValue"
                    failed.append({"Id": entry["Id"], "Code": code})
            return {"Failed": failed} if failed else {}

        return self.calls("sqs.change_message_visibility_batch", apply)

    def get_queue_attributes(self, **request: Any) -> dict[str, Any]:
        def apply() -> dict[str, Any]:
            url, now = request["QueueUrl"], self.clock.now_ns()
            queue = self.queues.get(url, [])
            hidden = sum(sent.visible_at > now for sent in queue)
            attributes = {
                "QueueArn": f"{_ARN}{url}",
                "ApproximateNumberOfMessages": str(len(queue) - hidden),
                "ApproximateNumberOfMessagesNotVisible": str(hidden),
                "ApproximateNumberOfMessagesDelayed": "0",
            }
            return {"Attributes": {name: attributes[name] for name in request["AttributeNames"]}}

        return self.calls("sqs.get_queue_attributes", apply)

    def start_message_move_task(self, **request: Any) -> dict[str, Any]:
        source, destination = (
            request[name].removeprefix(_ARN) for name in ("SourceArn", "DestinationArn")
        )
        task = MoveTask(source, destination, len(self.queues.get(source, [])))
        self.move_tasks.append(task)
        return {"TaskHandle": str(len(self.move_tasks) - 1)}

    def list_message_move_tasks(self, **request: Any) -> dict[str, Any]:
        source = request["SourceArn"].removeprefix(_ARN)
        tasks = [task for task in reversed(self.move_tasks) if task.source == source]
        for task in tasks:
            self._move_some(task)
        shown = [
            {
                "Status": task.status,
                "StartedTimestamp": self.move_tasks.index(task),
                "ApproximateNumberOfMessagesMoved": task.moved,
                "ApproximateNumberOfMessagesToMove": task.to_move,
                **({"TaskHandle": self._handle_of(task)} if task.status == "RUNNING" else {}),
            }
            for task in tasks
        ]
        return {"Results": shown[: request["MaxResults"]]}

    def _handle_of(self, task: MoveTask) -> str:
        return str(self.move_tasks.index(task))

    def cancel_message_move_task(self, **request: Any) -> dict[str, Any]:
        task = self.move_tasks[int(request["TaskHandle"])]
        if task.status != "RUNNING":
            operation, why = "CancelMessageMoveTask", "Only active tasks can be cancelled."
            raise client_error(operation, "InvalidParameterValue", why)
        task.status = "CANCELLED"
        return {"ApproximateNumberOfMessagesMoved": task.moved}

    def _move_some(self, task: MoveTask) -> None:
        if task.status != "RUNNING":
            return
        source = self.queues.setdefault(task.source, [])
        for _ in range(min(10, len(source))):
            self.queues.setdefault(task.destination, []).append(source.pop(0))
            task.moved += 1
        if not source:
            task.status = "COMPLETED"

    def _hide(self, sent: Sent, seconds: int) -> None:
        sent.visible_at = self.clock.now_ns() + seconds * 10**9

    def _redrive(self, queue_url: str) -> None:
        most, dead_letters = self.redrives.get(queue_url, (10**6, ""))
        queue = self.queues.get(queue_url, [])
        for sent in list(queue):
            if sent.receives >= most and sent.visible_at <= self.clock.now_ns():
                queue.remove(sent)
                self.queues.setdefault(dead_letters, []).append(sent)

    def _accept(self, queue_url: str, body: str, attributes: dict[str, str]) -> Sent:
        size = len(body.encode("utf-8", "surrogatepass"))
        for name, value in attributes.items():
            size += len(name) + len("String") + len(value.encode())
            if not value or _REFUSED.search(value):
                raise client_error("SendMessage", "InvalidParameterValue", name)
        if not body:
            raise client_error("SendMessage", "MissingParameter", "MessageBody")
        if _REFUSED.search(body):
            raise client_error("SendMessage", "InvalidMessageContents")
        if size > SQS_LIMIT_BYTES:
            raise client_error("SendMessage", "InvalidParameterValue", "message too long")
        self._sent += 1
        sent = Sent(f"m-{self._sent}", body, attributes, sent_at=self.clock.now_ns())
        self.queues.setdefault(queue_url, []).append(sent)
        return sent


def _delay_of(request: dict[str, Any]) -> int:
    delay: int = request.get("DelaySeconds", 0)
    if not 0 <= delay <= _LONGEST_DELAY_S:
        raise client_error("SendMessage", "InvalidParameterValue", "DelaySeconds")
    return delay


def _wrong_with(entries: list[dict[str, Any]]) -> str | None:
    if not entries:
        return "EmptyBatchRequest"
    if len(entries) > 10:
        return "TooManyEntriesInBatchRequest"
    if len({entry["Id"] for entry in entries}) < len(entries):
        return "BatchEntryIdsNotDistinct"
    size = sum(len(e["MessageBody"].encode("utf-8", "surrogatepass")) for e in entries)
    return "BatchRequestTooLong" if size > SQS_LIMIT_BYTES else None


def _as_received(sent: Sent, wanted: list[str], asked: list[str]) -> dict[str, Any]:
    attributes = {
        "ApproximateReceiveCount": str(sent.receives),
        "SentTimestamp": str(sent.sent_at // 10**6),
        **({"MessageGroupId": sent.group} if sent.group else {}),
    }
    names = attributes if wanted == ["All"] else wanted
    message: dict[str, Any] = {
        "MessageId": sent.message_id,
        "ReceiptHandle": sent.receipt,
        "Body": sent.body,
        "Attributes": {name: attributes[name] for name in names},
    }
    if sent.attributes and asked == ["All"]:
        message["MessageAttributes"] = {
            name: {"StringValue": value, "DataType": "String"}
            for name, value in sent.attributes.items()
        }
    return message


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
