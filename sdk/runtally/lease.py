"""A message that SQS hides from other workers for as long as this one is at work on it."""

import logging
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

_log = logging.getLogger("runtally")

VISIBILITY_S: Final = 120
"""How soon the job of a worker that died is there for another."""
HEARTBEAT_S: Final = 40
_PAUSES_S: Final = (1.0, 4.0, 16.0)
_GONE: Final = frozenset(
    {
        "AWS.SimpleQueueService.MessageNotInflight",
        "InvalidParameterValue",  # deleted meanwhile, or held for the 12 hours that SQS allows
        "MessageNotInflight",
        "ReceiptHandleIsInvalid",
    }
)


class Clock:
    """Time, as the process has it."""

    def now_ns(self) -> int:
        return time.time_ns()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for the event, at most so long; returns whether it came."""
        return event.wait(seconds)


def tries(clock: Clock) -> Iterator[None]:
    """A few rounds for something that may work the next time, each after a longer pause."""
    yield
    for pause in _PAUSES_S:
        clock.wait(threading.Event(), pause)
        yield


class Lease:
    """One received message. What goes wrong here is logged and stops no work: at worst the message
    comes again.
    """

    def __init__(
        self, sqs: "SQSClient", queue_url: str, message: "MessageTypeDef", clock: Clock
    ) -> None:
        self.message_id = message["MessageId"]
        self.receives = int(message["Attributes"]["ApproximateReceiveCount"])
        self._receipt = message["ReceiptHandle"]
        self._sqs = sqs
        self._queue_url = queue_url
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="runtally-heartbeat", daemon=True)

    def hold(self) -> None:
        """Keep the message hidden, from a thread of its own, until it is released or deleted."""
        self._thread.start()

    def delete(self) -> None:
        """End the hold and take the message off the queue."""
        self._end_hold()
        for _ in tries(self._clock):
            if self._deleted():
                return
        _log.error("runtally: message %s stays, its job will be done again", self.message_id)

    def release(self, seconds: int) -> None:
        """End the hold and let the message come again after so many seconds."""
        self._end_hold()
        self._hide(seconds)

    def _end_hold(self) -> None:
        # To the thread's end: a heartbeat still on its way would hide the message once more.
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        while not self._clock.wait(self._ended, HEARTBEAT_S):
            if not self._hide(VISIBILITY_S):
                return

    def _deleted(self) -> bool:
        try:
            self._sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=self._receipt)
        except Exception as error:  # noqa: BLE001 - botocore's many ways to say "not now"
            _log.warning("runtally: message %s is not deleted: %s", self.message_id, error)
            return _is_gone(error)
        return True

    def _hide(self, seconds: int) -> bool:
        """Whether the message can still be held; a request that merely failed does not tell."""
        try:
            self._sqs.change_message_visibility(
                QueueUrl=self._queue_url,
                ReceiptHandle=self._receipt,
                VisibilityTimeout=seconds,
            )
        except Exception as error:  # noqa: BLE001 - as above
            gone = _is_gone(error)
            what = "is held no longer, its job may be done twice" if gone else "keeps its timeout"
            _log.warning("runtally: message %s %s: %s", self.message_id, what, error)
            return not gone
        return True


def _is_gone(error: Exception) -> bool:
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in _GONE
