"""Messages that functions send: to the dead letters, and to ask for a recount."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.s3 import S3ObjectStore
from functions.core import caps, keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.ports import Refusal
from runtally.wire import SQS_LIMIT_BYTES

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")
_ATTRIBUTE_BYTES: Final = 1_024
_ATTRIBUTES_BYTES: Final = 4_096
"""Room for the attributes' names, types and values, which count towards the size of a message."""


class SqsDeadLetters:
    """core.ports.DeadLetters on a queue.

    The body stays as it came, so that moving the message back to its queue is all that a redrive
    needs; why it is here stands in its attributes `reason`, `field` and `refusals`.
    """

    def __init__(self, client: "SQSClient", queue_url: str, objects: S3ObjectStore) -> None:
        self._client = client
        self._queue_url = queue_url
        self._objects = objects

    def put_dead_letter(self, body: str, refusals: Sequence[Refusal]) -> None:
        content = body.encode("utf-8", "surrogatepass")
        if len(content) + _ATTRIBUTES_BYTES > SQS_LIMIT_BYTES:
            key = keys.dead_letter_object(hashlib.sha256(content).hexdigest())
            self._objects.put_dead_letter_body(key, content)
            body = json.dumps({"dead_letter": {"key": key, "bytes": len(content)}})
        listed = [{"reason": r.reason, "field": r.field, "detail": r.detail} for r in refusals]
        attributes = {
            "reason": refusals[0].reason,
            "field": refusals[0].field or "message",
            "refusals": json.dumps(listed),
        }
        _send(
            self._client,
            self._queue_url,
            body,
            {name: _printable(value) for name, value in attributes.items()},
        )


class SqsRecountQueue:
    """core.ports.RecountQueue on a queue that delays its messages."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def request_recount(self, ref: RunRef, agents_total: int | None) -> None:
        request = {"tenant_id": ref.tenant_id, "run_id": ref.run_id, "agents_total": agents_total}
        _send(self._client, self._queue_url, json.dumps(request), {})


def _send(client: "SQSClient", queue_url: str, body: str, attributes: dict[str, str]) -> None:
    try:
        client.send_message(
            QueueUrl=queue_url,
            MessageBody=body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in attributes.items()
            },
        )
    except (ClientError, BotoCoreError) as error:
        raise Unavailable(f"SQS send to {queue_url}: {error}") from error


def _printable(text: str) -> str:
    """SQS refuses control characters in attributes too, and what was refused may hold any."""
    return caps.cut(_UNPRINTABLE.sub("?", text), _ATTRIBUTE_BYTES)
