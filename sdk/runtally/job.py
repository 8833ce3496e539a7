"""What the work queue of a service entry holds: one message an invocation, for a worker to do."""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from runtally import json_text, wire


class Job(Struct, frozen=True):
    """One invocation of a service entry. `input` is JSON as the client wrote it, token by token."""

    v: Literal[1]
    tenant_id: wire.TenantId
    service_entry: wire.ServiceEntryName
    invocation_id: wire.InvocationId
    deadline_at: wire.Nanoseconds
    input: msgspec.Raw


_decoder: Final = msgspec.json.Decoder(Job)


def seal_job(job: Job) -> str:
    """The message body: text that SQS accepts, whatever the input holds."""
    return wire.sqs_safe(msgspec.json.encode(job)).decode()


def open_job(body: str) -> Job:
    """The job in a message body; lone surrogates in it become U+FFFD.

    Raises Rejected with the path of the refused field.
    """
    return wire.decode(_decoder, json_text.mend_strings(json_text.utf8(body)), "")
