"""Bodies too large for the queue: they wait in the bucket, and a claim takes their place."""

import hashlib
from typing import NamedTuple

import msgspec

from runtally import wire


class Claimed(NamedTuple):
    key: str
    """Where the body is to be put, in the stage's bucket, before the claim is sent."""
    claim: bytes
    """The message body that says so."""


def claimed(body: bytes) -> Claimed:
    """The claim for a sealed body. The key holds its hash, so that a resend overwrites nothing."""
    head = msgspec.json.decode(body, type=wire.Head)
    sha256 = hashlib.sha256(body).hexdigest()
    # `_` begins no run id: it holds the messages that belong to no run.
    key = f"inbox/{head.tenant_id}/{head.run_id or '_'}/{sha256}"
    claim = wire.Claim(key=key, sha256=sha256, bytes=len(body))
    return Claimed(key, msgspec.json.encode(msgspec.structs.replace(head, claim=claim)))
