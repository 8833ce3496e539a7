"""The claim check: a body too large for SQS lies in the bucket, and the message says where.

So does that of a dead letter which was too large together with the reasons why it is one.
"""

import hashlib

from functions.core import dead_letters, keys
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


def whole(objects: ObjectStore, body: str) -> str:
    """The body itself; of a dead letter's note that was moved back, the body it stands for.

    Raises Rejected when that can never be read, Unavailable when it cannot be now.
    """
    kept = dead_letters.kept_aside(body)
    if kept is None:
        return body
    if not kept.key.startswith(keys.DEAD_LETTERS) or kept.bytes > wire.SQS_LIMIT_BYTES:
        raise Rejected("invalid_claim", "dead_letter", "stands for no body that was kept aside")
    try:
        content = objects.get_claimed(kept.key, kept.bytes)
    except Rejected as rejected:
        where = rejected.field.replace("claim", "dead_letter", 1)
        raise Rejected(rejected.reason, where, rejected.detail) from None
    if keys.dead_letter_object(hashlib.sha256(content).hexdigest()) != kept.key:
        raise Rejected("invalid_claim", "dead_letter.key", "the object holds other bytes")
    return content.decode("utf-8", "surrogatepass")
