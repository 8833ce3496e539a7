"""Dead letters of a queue, looked at without taking any, and what each of them says."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from botocore.exceptions import ClientError
from msgspec import Struct

from functions.core import dead_letters, times
from local import queues
from local.queues import Queue
from local.stage import Stage

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_AT_ONCE: Final = 10
_WAIT_S: Final = 1
"""An empty answer without waiting may come from a part of the queue alone; with it, from all."""
_MARGIN_S: Final = 60
_MILLISECOND: Final = 1_000_000

type Message = dict[str, Any]
"""As SQS hands it over."""
type Late = Callable[[], bool]


class Letter(Struct, frozen=True):
    """What a dead letter says of itself. Without a `reason` it was delivered in vain.

    `size` is of the body, in bytes; `kept_as` is the key of a body that lies in the bucket.
    """

    queue: str
    message_id: str
    reason: str | None
    field: str | None
    tenant_id: str | None
    run_id: str | None
    invocation_id: str | None
    sent_at: str
    size: int
    kept_as: str | None


class _Whose(Struct):
    tenant_id: Any = None
    run_id: Any = None
    invocation_id: Any = None


class Browse:
    """Each message of a queue that can be received, once, until there are none or it is `late`.

    They are hidden meanwhile, so that none comes twice; `browsing` shows them again. `ended` tells
    whether the queue's end was reached.
    """

    def __init__(self, sqs: "SQSClient", url: str, late: Late, hidden_s: int) -> None:
        self._sqs = sqs
        self._url = url
        self._late = late
        self._hidden_s = hidden_s
        self._receipts: dict[str, str] = {}
        self.ended = False

    def __iter__(self) -> Iterator[Message]:
        while not self._late():
            received = self._receive()
            fresh = [one for one in received if one["MessageId"] not in self._receipts]
            self._receipts |= {one["MessageId"]: one["ReceiptHandle"] for one in received}
            if not fresh:  # the end; or they show again already, which is one too
                self.ended = True
                return
            yield from fresh

    def delete(self, message: Message) -> None:
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        del self._receipts[message["MessageId"]]

    def show_again(self) -> None:
        """Entries that SQS refuses are shown again, or gone, already."""
        receipts = list(self._receipts.values())
        for start in range(0, len(receipts), _AT_ONCE):
            self._sqs.change_message_visibility_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": f"{n}", "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                    for n, receipt in enumerate(receipts[start : start + _AT_ONCE])
                ],
            )

    def _receive(self) -> Sequence[Message]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=_AT_ONCE,
            VisibilityTimeout=self._hidden_s,
            WaitTimeSeconds=_WAIT_S,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        return [dict(message) for message in answer.get("Messages", ())]


@contextmanager
def browsing(sqs: "SQSClient", url: str, within_s: float) -> Iterator[Browse]:
    """The dead letters at that URL; however the `with` block ends, what is left shows again."""
    deadline = time.monotonic() + within_s
    browse = Browse(sqs, url, lambda: time.monotonic() > deadline, int(within_s) + _MARGIN_S)
    try:
        yield browse
    finally:
        browse.show_again()


class Survey(Struct, frozen=True):
    """The letters that were seen. `there` is what SQS counts, approximately, itself.

    `complete`: each of the queues was read to its end, and had no more than that.
    """

    letters: list[Letter]
    there: int
    complete: bool


def survey(
    stage: Stage, of: Iterable[Queue], within_s: float, wanted: Callable[[Letter], bool]
) -> Survey:
    """Every dead letter of these queues that is wanted, as many as the time allows."""
    deadline = time.monotonic() + within_s
    letters: list[Letter] = []
    there, complete = 0, True
    for queue in of:
        counted = queues.length(stage, queue.dead_letters_url)
        there += counted
        seen = 0
        left_s = max(0.0, deadline - time.monotonic())
        with browsing(stage.sqs, queue.dead_letters_url, left_s) as browse:
            for message in browse:
                seen += 1
                letter = letter_of(stage, queue, message)
                if wanted(letter):
                    letters.append(letter)
        complete = complete and browse.ended and seen >= counted
    return Survey(sorted(letters, key=lambda letter: letter.sent_at), there, complete)


def find(stage: Stage, of: Iterable[Queue], message_id: str, within_s: float) -> Message | None:
    """The message of that id, which stays where it is; None when it was not seen in time."""
    deadline = time.monotonic() + within_s
    for queue in of:
        left_s = max(0.0, deadline - time.monotonic())
        with browsing(stage.sqs, queue.dead_letters_url, left_s) as browse:
            for message in browse:
                if message["MessageId"] == message_id:
                    return message | {"Queue": queue}
    return None


def letter_of(stage: Stage, queue: Queue, message: Message) -> Letter:
    refusal = refusal_of(message)
    kept = dead_letters.kept_aside(message["Body"])
    whose = _whose(message["Body"] if kept is None else body_of(stage, message) or b"")
    return Letter(
        queue=queue.name,
        message_id=message["MessageId"],
        reason=refusal.get(dead_letters.REASON),
        field=refusal.get(dead_letters.FIELD),
        tenant_id=_text(whose.tenant_id),
        run_id=_text(whose.run_id),
        invocation_id=_text(whose.invocation_id),
        sent_at=times.text_of(int(message["Attributes"]["SentTimestamp"]) * _MILLISECOND),
        size=len(message["Body"].encode()) if kept is None else kept.bytes,
        kept_as=None if kept is None else kept.key,
    )


def refusal_of(message: Message) -> dict[str, str]:
    """The attributes that say why it was refused; none of a message that was not, whatever else its
    sender called so."""
    given = message.get("MessageAttributes", {})
    if dead_letters.REFUSALS not in given:
        return {}
    return {name: given[name]["StringValue"] for name in dead_letters.REFUSAL & given.keys()}


def body_of(stage: Stage, message: Message) -> bytes | None:
    """The body as it was sent, wherever it lies; None when the bucket has it no longer."""
    kept = dead_letters.kept_aside(message["Body"])
    if kept is None:
        return str(message["Body"]).encode()
    try:
        return stage.s3.get_object(Bucket=stage.bucket_name, Key=kept.key)["Body"].read()
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchKey":
            raise
        return None


def _whose(body: str | bytes) -> _Whose:
    """What was refused may be anything at all."""
    try:
        return msgspec.json.decode(body, type=_Whose)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _Whose()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
