"""Messages that functions send: to the dead letters, and to ask for a recount."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.s3 import S3ObjectStore
from functions.core import caps, dead_letters, keys
from functions.core.dead_letters import KeptAside
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.ports import Refusal
from runtally.claims import claimed
from runtally.wire import SQS_LIMIT_BYTES, RunId, TenantId

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")
_TYPE: Final = "String"
_ATTRIBUTE_BYTES: Final = 256
_LISTED_BYTES: Final = 2_048
_SENT_AT_ONCE: Final = 16


class SqsDeadLetters:
    """core.ports.DeadLetters on a queue.

    The body stays as it came, or a note stands for it, so that moving the message back to its queue
    is all that a redrive needs. Why it is here stands in its attributes: `reason` and `field` of
    the first refusal, how many were `refused`, and `refusals`, the first of them as JSON.
    """

    def __init__(self, client: "SQSClient", queue_url: str, objects: S3ObjectStore) -> None:
        self._client = client
        self._queue_url = queue_url
        self._objects = objects

    def put_dead_letter(self, body: str, refusals: Sequence[Refusal]) -> None:
        attributes = {
            dead_letters.REASON: refusals[0].reason,
            dead_letters.FIELD: _printable(refusals[0].field or "message"),
            dead_letters.REFUSED: str(len(refusals)),
            dead_letters.REFUSALS: _listed(refusals),
        }
        content = body.encode("utf-8", "surrogatepass")
        if len(content) + _size_of(attributes) > SQS_LIMIT_BYTES:
            key = keys.dead_letter_object(hashlib.sha256(content).hexdigest())
            self._objects.put_dead_letter_body(key, content)
            body = dead_letters.note(KeptAside(key, len(content)))
        _send(self._client, self._queue_url, body, attributes)


class RecountRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a message of the recount queue says: core.ports.RecountQueue's words."""

    tenant_id: TenantId
    run_id: RunId
    agents_total: int | None = None
    announce: bool = False


class SqsRecountQueue:
    """core.ports.RecountQueue on a queue that delays its messages."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def request_recount(
        self, ref: RunRef, agents_total: int | None, *, announce: bool = False
    ) -> None:
        request = RecountRequest(ref.tenant_id, ref.run_id, agents_total, announce)
        _send(self._client, self._queue_url, msgspec.json.encode(request).decode(), {})


class ErasureRequest(msgspec.Struct, frozen=True):
    """What a message of the erasure queue says."""

    tenant_id: TenantId
    run_id: RunId


class SqsErasures:
    """core.deletions.Erasures on a queue."""

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def request_erasure(self, ref: RunRef, delay_s: int = 0) -> None:
        body = msgspec.json.encode(ErasureRequest(*ref)).decode()
        _send(self._client, self._queue_url, body, {}, delay_s=delay_s)


class SqsEventQueue:
    """core.api_ports.EventQueue on the queue that ingest reads."""

    def __init__(self, client: "SQSClient", queue_url: str, objects: S3ObjectStore) -> None:
        self._client = client
        self._queue_url = queue_url
        self._objects = objects

    def send_events(self, tenant_id: str, body: bytes) -> None:
        if len(body) > SQS_LIMIT_BYTES:
            claim = claimed(body)
            self._objects.put_claimed(claim.key, body)
            body = claim.claim
        _send(self._client, self._queue_url, body.decode(), {}, group=tenant_id)

    def send_all(self, tenant_id: str, bodies: Sequence[bytes]) -> None:
        if len(bodies) == 1:
            self.send_events(tenant_id, bodies[0])
            return
        with ThreadPoolExecutor(_SENT_AT_ONCE) as pool:
            sent = [pool.submit(self.send_events, tenant_id, body) for body in bodies]
            for one in sent:
                one.result()


class SqsJobQueues:
    """core.api_ports.JobQueues on queues by the name of their service entry."""

    def __init__(self, client: "SQSClient", queue_urls: Mapping[str, str]) -> None:
        self._client = client
        self._queue_urls = queue_urls

    def names(self) -> Collection[str]:
        return self._queue_urls.keys()

    def send_job(self, service_entry: str, tenant_id: str, body: str) -> None:
        _send(self._client, self._queue_urls[service_entry], body, {}, group=tenant_id)


def _send(  # noqa: PLR0913 - one a word of SQS
    client: "SQSClient",
    queue_url: str,
    body: str,
    attributes: dict[str, str],
    *,
    group: str = "",
    delay_s: int = 0,
) -> None:
    """`group`, on a standard queue, means a fair share for every tenant, not an order."""
    try:
        client.send_message(
            QueueUrl=queue_url,
            MessageBody=body,
            MessageAttributes={
                name: {"DataType": _TYPE, "StringValue": value}
                for name, value in attributes.items()
            },
            **cast("Any", {"MessageGroupId": group} if group else {}),
            **cast("Any", {"DelaySeconds": delay_s} if delay_s else {}),
        )
    except (ClientError, BotoCoreError) as error:
        raise Unavailable(f"SQS send to {queue_url}: {error}") from error


def _size_of(attributes: dict[str, str]) -> int:
    """Names, types and values all count towards the size of a message."""
    return sum(len(name) + len(_TYPE) + len(value) for name, value in attributes.items())


def _listed(refusals: Sequence[Refusal]) -> str:
    """As JSON, the first refusals: as many whole ones as there is room for."""
    listed: list[str] = []
    room = _LISTED_BYTES - 2
    for refusal in refusals:
        field, detail = _printable(refusal.field), _printable(refusal.detail)
        entry = json.dumps({"reason": refusal.reason, "field": field, "detail": detail})
        room -= len(entry) + 1
        if room < 0:
            break
        listed.append(entry)
    return f"[{','.join(listed)}]"


def _printable(text: str) -> str:
    """SQS refuses control characters in attributes too, and what was refused may hold any."""
    return caps.cut(_UNPRINTABLE.sub("?", text), _ATTRIBUTE_BYTES)
