"""The claim check: a body too large for SQS lies in the bucket, and the message says where."""

import hashlib

from functions.core import keys
from functions.core.errors import Rejected
from functions.core.keys import RunRef
from functions.core.ports import ObjectStore
from runtally import wire
from runtally.wire import Claim, Head, Message


def redeem(objects: ObjectStore, head: Head, claim: Claim) -> Message:
    """The message that a claim stands for: only its own run's, intact, and of bounded size.

    Raises Rejected when the object can never be that message, Unavailable when it cannot be read.
    """
    ref = RunRef(head.tenant_id, head.run_id or "")
    if claim.key != keys.inbox_prefix(ref) + claim.sha256:
        raise Rejected("invalid_claim", "claim.key", "outside the inbox of this run")
    if claim.bytes > wire.CLAIM_LIMIT_BYTES:
        raise Rejected("invalid_claim", "claim.bytes", f"over {wire.CLAIM_LIMIT_BYTES:,} bytes")
    content = objects.get_claimed(claim.key, claim.bytes)
    if hashlib.sha256(content).hexdigest() != claim.sha256:
        raise Rejected("invalid_claim", "claim.sha256", "the object holds other bytes")
    try:
        inner = wire.open_message(content.decode())
    except UnicodeDecodeError as error:
        raise Rejected("not_json", "claim", f"no UTF-8 at byte {error.start:,}") from None
    if inner.head != Head(head.v, head.tenant_id, head.run_id, head.buckets):
        raise Rejected("invalid_claim", "claim", "its envelope differs from the one outside")
    return inner
