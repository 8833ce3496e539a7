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
_ATTRIBUTE_BYTES: Final = 2_048
_DETAIL_BYTES: Final = 256
_ATTRIBUTES_BYTES: Final = 4_096
"""Room for the attributes' names, types and values, which count towards the size of a message."""


class SqsDeadLetters:
    """core.ports.DeadLetters on a queue.

    The body stays as it came, so that moving the message back to its queue is all that a redrive
    needs; why it is here stands in its attributes: `reason` and `field` of the first refusal, how
    many were `refused`, and `refusals`, the first of them as JSON.
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
        attributes = {
            "reason": refusals[0].reason,
            "field": refusals[0].field or "message",
            "refused": str(len(refusals)),
            "refusals": _listed(refusals),
        }
        _send(
            self._client,
            self._queue_url,
            body,
            {name: _printable(value, _ATTRIBUTE_BYTES) for name, value in attributes.items()},
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


def _listed(refusals: Sequence[Refusal]) -> str:
    """As JSON, the first refusals: as many whole ones as an attribute has room for."""
    listed: list[str] = []
    room = _ATTRIBUTE_BYTES - 2
    for refusal in refusals:
        detail = _printable(refusal.detail, _DETAIL_BYTES)
        field = _printable(refusal.field, _DETAIL_BYTES)
        entry = json.dumps({"reason": refusal.reason, "field": field, "detail": detail})
        room -= len(entry) + 1
        if room < 0:
            break
        listed.append(entry)
    return f"[{','.join(listed)}]"


def _printable(text: str, limit: int) -> str:
    """SQS refuses control characters in attributes too, and what was refused may hold any."""
    return caps.cut(_UNPRINTABLE.sub("?", text), limit)
