"""How sealed messages leave the process: to SQS, or into a file."""

import gzip
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

import msgspec

from runtally import wire
from runtally.claims import claimed
from runtally.cuts import Sealed

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

_log = logging.getLogger("runtally")
_BATCH_ENTRIES: Final = 10
_CLAIM_BYTES: Final = 1_024  # more than a claim ever takes


@dataclass(slots=True)
class Delivery:
    """What became of messages besides being accepted: those to be sent again, those that never will
    be.
    """

    unsent: list[Sealed] = field(default_factory=list)
    refused: list[tuple[Sealed, str]] = field(default_factory=list)
    down: bool = False
    """Nothing went through: trying the next message now would be useless too."""


class Sender(Protocol):
    @property
    def limit_bytes(self) -> int | None:
        """The largest body that it takes; None when any size will do."""

    def send(self, messages: Sequence[Sealed]) -> Delivery:
        """Send messages in order. May raise anything: then all of them count as unsent."""


class FileSender:
    """Appends each message as one line to a file (JSON Lines); gzipped when the name ends in `.gz`.

    Each call appends whole gzip members, so that the file can be read after a crash at any point
    before it.
    """

    limit_bytes: int | None = None

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def send(self, messages: Sequence[Sealed]) -> Delivery:
        lines = b"".join(message.body + b"\n" for message in messages)
        if self.path.suffix == ".gz":
            lines = gzip.compress(lines, mtime=0)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(lines)
        return Delivery()


class SqsSender:
    """Sends to an SQS queue, up to ten messages a request; bodies over the SQS limit go through the
    bucket.

    Clients are made at the first send, in the thread that sends, with boto3's usual credentials.
    """

    def __init__(
        self,
        queue_url: str,
        bucket: str | None = None,
        *,
        region: str | None = None,
        sqs: "SQSClient | None" = None,
        s3: "S3Client | None" = None,
    ) -> None:
        self._queue_url = queue_url
        self._bucket = bucket
        self._region = region
        self._injected_sqs = sqs
        self._injected_s3 = s3
        self._made: dict[tuple[int, str], SQSClient | S3Client] = {}

    @property
    def limit_bytes(self) -> int:
        return wire.CLAIM_LIMIT_BYTES if self._bucket else wire.SQS_LIMIT_BYTES

    def send(self, messages: Sequence[Sealed]) -> Delivery:
        delivery = Delivery()
        remaining = list(messages)
        for batch in _batches(messages, self._limit_on_queue):
            try:
                self._send_batch(batch, delivery)
            except Exception as error:  # noqa: BLE001 - botocore's many ways to say "not now"
                _log.warning("runtally: %d messages wait: %s", len(remaining), error)
                delivery.down = True
                delivery.unsent += [m for m in remaining if m not in delivery.unsent]
                break
            del remaining[: len(batch)]
        return delivery

    @property
    def _limit_on_queue(self) -> int | None:
        return wire.SQS_LIMIT_BYTES if self._bucket else None

    def _send_batch(self, batch: Sequence[Sealed], delivery: Delivery) -> None:
        entries: list[SendMessageBatchRequestEntryTypeDef] = []
        for index, message in enumerate(batch):
            head = msgspec.json.decode(message.body, type=wire.Head)
            try:
                body = self._body_for_queue(message.body)
            except Exception as error:  # noqa: BLE001 - a bucket that fails holds up nothing else
                _log.warning("runtally: a message of %d bytes waits: %s", len(message.body), error)
                delivery.unsent.append(message)
                continue
            # The group, on a standard queue, means a fair share for every tenant, not an order.
            entry: SendMessageBatchRequestEntryTypeDef = {
                "Id": str(index),
                "MessageBody": body.decode(),
                "MessageGroupId": head.tenant_id,
            }
            entries.append(entry)
        if not entries:
            return
        answer = self._sqs.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
        for failed in answer.get("Failed", []):
            message = batch[int(failed["Id"])]
            why = f"{failed['Code']}: {failed.get('Message', '')}"
            if failed["SenderFault"]:
                delivery.refused.append((message, why))
            else:
                _log.warning("runtally: a message waits: %s", why)
                delivery.unsent.append(message)

    def _body_for_queue(self, body: bytes) -> bytes:
        """The body itself or, past the limit, a claim on the object that holds it."""
        if self._limit_on_queue is None or len(body) <= self._limit_on_queue:
            return body
        key, claim = claimed(body)
        self._s3.put_object(Bucket=self._bucket or "", Key=key, Body=body)
        return claim

    @property
    def _sqs(self) -> "SQSClient":
        return self._injected_sqs or cast("SQSClient", self._client("sqs"))

    @property
    def _s3(self) -> "S3Client":
        return self._injected_s3 or cast("S3Client", self._client("s3"))

    def _client(self, service: Literal["sqs", "s3"]) -> "SQSClient | S3Client":
        """One client a process: a forked child must not talk over its parent's connections."""
        key = (os.getpid(), service)
        if key not in self._made:
            import boto3  # noqa: PLC0415 - heavy, and not needed before
            from botocore.config import Config  # noqa: PLC0415 - as above

            config = Config(
                retries={"mode": "standard", "total_max_attempts": 3},
                connect_timeout=3,
                read_timeout=10,
                max_pool_connections=2,
                tcp_keepalive=True,
                parameter_validation=False,
                user_agent_extra="runtally",
            )
            self._made[key] = boto3.client(service, region_name=self._region, config=config)
        return self._made[key]


def _batches(messages: Iterable[Sealed], claimed_over: int | None) -> Iterator[list[Sealed]]:
    """Up to ten messages and 1 MiB of bodies each; a body that is claimed counts as the claim."""
    batch: list[Sealed] = []
    size = 0
    for message in messages:
        bytes_ = len(message.body)
        if claimed_over is not None and bytes_ > claimed_over:
            bytes_ = _CLAIM_BYTES
        if batch and (len(batch) == _BATCH_ENTRIES or size + bytes_ > wire.SQS_LIMIT_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += bytes_
    if batch:
        yield batch
