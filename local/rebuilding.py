"""The runs of a stage made anew from their objects: each object is a message that ingest reads."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from functions.core import keys, retention
from functions.core.errors import Rejected
from functions.core.keys import RunRef
from runtally import wire
from runtally.wire import Head

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class Stored:
    """An object of a run, as the bucket lists it."""

    ref: RunRef
    key: str
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class Content:
    """The message of an object. `body` is None when all of its events are `too_old`, a number."""

    body: bytes | None
    too_old: int


def objects_of(s3: "S3Client", bucket: str, prefix: str) -> Iterator[Stored]:
    """The objects of runs below a prefix, in order of their keys: run by run, by first step."""
    request: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    while True:
        page = s3.list_objects_v2(**request)
        for listed in page.get("Contents", ()):
            ref = keys.parse_object_of_run(listed["Key"])
            yield Stored(ref, listed["Key"], listed["LastModified"])
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def content_of(
    s3: "S3Client", bucket: str, stored: Stored, too_old: Callable[[bytes], bool]
) -> Content:
    """The message that the object was stored from: of its events, those that were accepted then
    and are not too old by now."""
    answer = s3.get_object(Bucket=bucket, Key=stored.key)
    lines = gzip.decompress(answer["Body"].read()).removesuffix(b"\n").split(b"\n")
    buckets = int(answer["Metadata"].get("buckets", 1))
    tenant_id, run_id = stored.ref
    head = Head(v=wire.VERSION, tenant_id=tenant_id, run_id=run_id, buckets=buckets)
    kept = [line for line in lines if not too_old(line)]
    return Content(wire.seal(head, kept) if kept else None, len(lines) - len(kept))


def is_too_old(line: bytes, now_ns: int, retention_days: int) -> bool:
    """Whether ingest would refuse the event for its age: it was young enough when it came."""
    try:
        retention.refuse_if_expired(
            wire.decode_event(line, "event"), "event", now_ns, retention_days
        )
    except Rejected as rejected:
        return rejected.reason == "too_old"
    return False
