"""The runs of a stage made anew from their objects: each object is a message that ingest reads."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from functions.core import keys, retention
from functions.core.errors import Rejected
from functions.core.keys import RunRef
from local.listing import listed
from runtally import wire
from runtally.wire import Head, RunEnded, Step

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_STEP: Final = Step.__struct_config__.tag
_RUN_ENDED: Final = RunEnded.__struct_config__.tag


@dataclass(frozen=True, slots=True)
class Stored:
    """An object of a run, as the bucket lists it."""

    ref: RunRef
    key: str
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class Content:
    """The message of an object. `body` is None when all of its events are `too_old`, a number;
    the rest is about those that it has: the ids of steps, and whether the run ends."""

    body: bytes | None
    too_old: int
    step_ids: frozenset[str]
    ends: bool


class _Kind(msgspec.Struct):
    """What counts of an event, also of one that ingest may refuse: it is missed all the same."""

    type: str = ""
    step_id: str = ""


def objects_of(
    s3: "S3Client", bucket: str, prefix: str, foreign: Callable[[str], object] = lambda _: None
) -> Iterator[Stored]:
    """The objects of runs below a prefix, in order of their keys: run by run, by first step.

    `foreign` hears the key of what is no run's, such as the folder that a console makes.
    """
    for found in listed(s3, bucket, prefix):
        key = found["Key"]
        try:
            ref = keys.parse_object_of_run(key)
        except ValueError:
            foreign(key)
        else:
            yield Stored(ref, key, found["LastModified"])


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
    kinds = [_kind_of(line) for line in kept]
    return Content(
        body=wire.seal(head, kept) if kept else None,
        too_old=len(lines) - len(kept),
        step_ids=frozenset(kind.step_id for kind in kinds if kind.type == _STEP),
        ends=any(kind.type == _RUN_ENDED for kind in kinds),
    )


def _kind_of(line: bytes) -> _Kind:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(line, type=_Kind)
    return _Kind()


def is_too_old(line: bytes, now_ns: int, retention_days: int) -> bool:
    """Whether ingest would refuse the event for its age: it was young enough when it came."""
    try:
        retention.refuse_if_expired(
            wire.decode_event(line, "event"), "event", now_ns, retention_days
        )
    except Rejected as rejected:
        return rejected.reason == "too_old"
    return False
