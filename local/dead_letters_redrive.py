"""Dead letters moved back to their queue: by SQS itself, or one by one.

Each way is at least once: a message may come twice, and ids decide that it counts once.
"""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from botocore.exceptions import ClientError
from msgspec import Struct

from local.dead_letters import Message, browsing, refusal_of
from local.queues import Queue
from local.stage import Stage

_NO_SUCH_REQUEST: Final = frozenset({"InvalidAction", "UnknownOperationException"})
_ENDED_BY_ITSELF: Final = frozenset({"InvalidParameterValue", "ResourceNotFoundException"})
"""What SQS answers to who would cancel a task that has come to its end."""
_RUNNING: Final = frozenset({"RUNNING", "CANCELLING"})

_JUST_STARTED: Final = {"Status": "RUNNING"}
_STARTED: Final = "StartedTimestamp"

_ENDED: Final = "SQS's task was ended"

type Told = Callable[[int], object]
"""Called with how many were moved so far."""


class Moved(Struct, frozen=True):
    """How many letters of a queue went back; `why_not` tells why not all of them did."""

    queue: str
    moved: int
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class Redrive:
    """Moves dead letters of a stage's queues back; `within_s` is for each queue."""

    stage: Stage
    within_s: float
    sleep: Callable[[float], object]

    def move(self, queue: Queue, ids: Collection[str], told: Told) -> Moved:
        """Send these letters to their queue, and delete each once SQS has it.

        Others stay, among them those that come back meanwhile: they have other ids.
        """
        left = set(ids)
        sqs = self.stage.sqs
        with browsing(sqs, queue.dead_letters_url, self.within_s) as browse:
            for message in browse if left else ():
                if message["MessageId"] in left:
                    sqs.send_message(QueueUrl=queue.url, **_as_it_was(message))
                    browse.delete(message)
                    left.discard(message["MessageId"])
                    told(len(ids) - len(left))
                if not left:
                    break
        why_not = f"{len(left):,} were not seen in time, or are no longer there" if left else None
        return Moved(queue.name, len(ids) - len(left), why_not)

    def move_all(self, queue: Queue, there: int, told: Told) -> Moved | None:
        """Let SQS move all dead letters of a queue; None where it has no such request.

        The destination is named: what was sent to the dead letters, and not moved there by SQS, has
        no queue that SQS knows of. SQS takes along what comes back meanwhile, so that what is
        refused each time would go round for ever: the task never outlives this call, however that
        ends, and is ended before once it has moved more than there were at first.
        """
        try:
            return self._by_task(queue, there, told)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NO_SUCH_REQUEST:
                return None
            raise

    def _by_task(self, queue: Queue, there: int, told: Told) -> Moved:
        source, to = _arn(self.stage, queue.dead_letters_url), _arn(self.stage, queue.url)
        before = self._newest(source)
        handle, running = "", True
        try:
            try:
                started = self.stage.sqs.start_message_move_task(
                    SourceArn=source, DestinationArn=to
                )
            except ClientError:
                running = False  # or somebody else's is
                raise
            handle = started["TaskHandle"]
            for task in self._looks_at(source, before):
                moved = task.get("ApproximateNumberOfMessagesMoved", 0)
                told(moved)
                running = task["Status"] in _RUNNING
                if not running:
                    return Moved(queue.name, moved, _why_not(task))
                if moved > max(there, task.get("ApproximateNumberOfMessagesToMove", 0)):
                    return Moved(queue.name, moved, f"{_ENDED}, letters came back meanwhile")
            return Moved(queue.name, moved, f"{_ENDED}, the time was up: run it again for the rest")
        finally:
            if running:  # also where a signal came before the answer to its start
                self._cancel(handle or self._newest(source).get("TaskHandle", ""))

    def _newest(self, source: str) -> dict[str, Any]:
        """The newest task; empty without any."""
        answer = self.stage.sqs.list_message_move_tasks(SourceArn=source, MaxResults=1)
        return cast("dict[str, Any]", answer["Results"][0]) if answer["Results"] else {}

    def _looks_at(self, source: str, before: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """How far the task is, second by second, once at least, until the time is up. SQS may list
        it a moment late, and until then what was there `before`."""
        deadline = time.monotonic() + self.within_s
        while True:
            newest = self._newest(source)
            is_ours = newest.get(_STARTED) != before.get(_STARTED)
            yield newest if is_ours else _JUST_STARTED
            if time.monotonic() > deadline:
                return
            self.sleep(1)

    def _cancel(self, handle: str) -> None:
        if not handle:
            return  # it never began
        try:
            self.stage.sqs.cancel_message_move_task(TaskHandle=handle)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ENDED_BY_ITSELF:
                raise


def _as_it_was(message: Message) -> Any:
    """Body, group and the sender's attributes, without those that say why it was refused."""
    given, refusal = message.get("MessageAttributes", {}), refusal_of(message)
    attributes = {name: value for name, value in given.items() if name not in refusal}
    group = message["Attributes"].get("MessageGroupId")
    return {
        "MessageBody": message["Body"],
        **({"MessageAttributes": attributes} if attributes else {}),
        **({"MessageGroupId": group} if group else {}),
    }


def _why_not(task: dict[str, Any]) -> str | None:
    if task["Status"] == "COMPLETED":
        return None
    return f"the task is {task['Status']}: {task.get('FailureReason', 'no reason given')}"


def _arn(stage: Stage, url: str) -> str:
    answer = stage.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return answer["Attributes"]["QueueArn"]
