"""The wire format, version 1: what the body of an SQS message may hold.

This module is the one definition. Senders seal messages with it, ingest opens them with it, and the
JSON Schema in events/schema/ is generated from it. Unknown fields are ignored; an unknown version
or type is refused.
"""

import hashlib
import re
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from runtally import json_text

VERSION: Final = 1
SQS_LIMIT_BYTES: Final = 1_048_576
"""Body and attributes together:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"""
CLAIM_LIMIT_BYTES: Final = 64 * 1024 * 1024

# `$` alone would let a trailing line feed through.
_END = r"$(?!\n)"
TenantId = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,63}}{_END}")]
RunId = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._:-]{{0,127}}{_END}")]
StepId = Annotated[str, Meta(pattern=rf"^[0-9]{{19}}-[0-9a-z]{{8,11}}{_END}")]
PARENT_SUFFIX_LENGTH: Final = 11
ParentId = Annotated[
    str,
    Meta(
        pattern=rf"^([0-9]{{19}}-[0-9a-z]{{8,11}}|[0-9a-z]{{{PARENT_SUFFIX_LENGTH}}}){_END}",
        description="A step id; or its 11 characters after the dash, from a sender that does not"
        " know when the parent began",
    ),
]
InvocationId = Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._:-]{{0,127}}{_END}")]
ServiceEntryName = Annotated[str, Meta(pattern=rf"^[a-z][a-z0-9-]{{0,31}}{_END}")]
Kind = Annotated[str, Meta(pattern=rf"^[a-z][a-z0-9_.-]{{0,31}}{_END}")]
Buckets = Annotated[int, Meta(ge=1, le=64)]
Nanoseconds = Annotated[
    int, Meta(ge=0, le=2**63 - 1, description="Nanoseconds since the Unix epoch, UTC")
]
Tokens = Annotated[int, Meta(ge=0, le=10**12)]
Money = Annotated[
    str,
    Meta(
        pattern=rf"^(0|[1-9][0-9]{{0,11}})(\.[0-9]{{1,18}})?{_END}",
        description="US dollars, written out: below 10^12, at most 18 decimals, no exponent",
    ),
]
Scalar: TypeAlias = str | int | float | bool | None
Attributes: TypeAlias = dict[str, Scalar | list[Scalar]]
Status = Literal["succeeded", "failed", "cancelled"]


class Rejected(ValueError):  # noqa: N818 - named for what happened to the input, as the handlers read it
    """Input that can never be accepted, so that trying again is useless.

    `reason` is one word of a small set (fit for a metric), `field` a path such as
    `events[3].cost_usd`.
    """

    def __init__(self, reason: str, field: str, detail: str) -> None:
        super().__init__(f"{field or 'message'}: {detail} ({reason})")
        self.reason = reason
        self.field = field
        self.detail = detail


class RunStarted(Struct, tag_field="type", tag="run.started", omit_defaults=True, frozen=True):
    at: Nanoseconds
    pipeline: str
    attributes: Attributes | None = None
    session_id: str | None = None
    stale_after_s: Annotated[int, Meta(ge=1, le=31_536_000)] | None = None


class Step(Struct, tag_field="type", tag="step", omit_defaults=True, frozen=True, kw_only=True):
    """One recorded agent, model or tool call. Tokens and cost are its own, not its children's.

    `phase_hint` is what its phase may be called when nothing above it has one: of the hints on the
    way up, the outermost below the root counts.
    """

    step_id: StepId
    name: str | None = None
    phase: str | None = None
    phase_hint: str | None = None
    agent: str | None = None
    kind: Kind
    status: Status
    started_at: Nanoseconds
    ended_at: Nanoseconds
    parent_id: ParentId | None = None
    session_id: str | None = None
    model: str | None = None
    provider: str | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    cache_write_tokens: Tokens | None = None
    reasoning_tokens: Tokens | None = None
    cost_usd: Money | None = None
    cost_computed_usd: Money | None = None
    price_table: str | None = None
    error: str | None = None
    attributes: Attributes | None = None
    payload: msgspec.Raw | UnsetType = UNSET


class RunLog(Struct, tag_field="type", tag="run.log", omit_defaults=True, frozen=True):
    log_id: StepId
    at: Nanoseconds
    lines: list[str]


class RunEnded(Struct, tag_field="type", tag="run.ended", omit_defaults=True, frozen=True):
    at: Nanoseconds
    status: Status
    result: str | None = None
    error: str | None = None


class InvocationEnded(
    Struct, tag_field="type", tag="invocation.ended", omit_defaults=True, frozen=True
):
    """The answer to an invocation of a service entry: a message of its own, without run_id."""

    invocation_id: InvocationId
    status: Status
    result: str | None = None
    error: str | None = None


RunEvent: TypeAlias = RunStarted | Step | RunLog | RunEnded
Event: TypeAlias = RunEvent | InvocationEnded


class Claim(Struct, frozen=True):
    """Where in the bucket a body lies that is too large for SQS."""

    key: str
    sha256: Annotated[str, Meta(pattern=rf"^[0-9a-f]{{64}}{_END}")]
    bytes: Annotated[int, Meta(ge=1)]


class Head(Struct, omit_defaults=True, frozen=True):
    """An envelope without its events: whose they are, and how they came."""

    v: Literal[1]
    tenant_id: TenantId
    run_id: RunId | None = None
    buckets: Buckets = 1
    claim: Claim | None = None


class Message(Struct, frozen=True):
    """An opened message: its head, and each event as the minified line that is stored."""

    head: Head
    lines: list[bytes]


class Envelope(Struct, omit_defaults=True, frozen=True):
    """The published shape of a message body that carries events."""

    v: Literal[1]
    tenant_id: TenantId
    events: Annotated[list[Event], Meta(min_length=1)]
    run_id: RunId | None = None
    buckets: Buckets = 1


class ClaimEnvelope(Struct, omit_defaults=True, frozen=True):
    """The published shape of a message body that only says where the events are."""

    v: Literal[1]
    tenant_id: TenantId
    claim: Claim
    run_id: RunId | None = None
    buckets: Buckets = 1


class _Outer(Struct, frozen=True):
    events: list[msgspec.Raw] | UnsetType = UNSET


_T = TypeVar("_T")
_outer_decoder = msgspec.json.Decoder(_Outer)
_head_decoder = msgspec.json.Decoder(Head)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_encoder = msgspec.json.Encoder()
_NOT_FINITE = re.compile(rb'"(?P<key>\w+)"\s*:[\s\[]*(?P<value>NaN|-?Infinity)')
_FIELD = re.compile(r"^(?P<what>.*?) - at `(?:key in )?\$\.?(?P<path>.*)`$", re.DOTALL)


def open_message(body: str) -> Message:
    """Open a body: the head checked, the events cut out as minified lines but not yet looked into.

    A body that no strict parser takes (NaN, lone surrogates, extreme nesting) is taken apart as
    text, so that only the events concerned suffer. Raises Rejected when there is no envelope to
    speak of.
    """
    raw = json_text.utf8(body)
    try:
        outer = _outer_decoder.decode(raw)
        events = outer.events
        lines = [] if isinstance(events, UnsetType) else [json_text.minify(e) for e in events]
        mendable = any(json_text.deeper_than(line) for line in lines)
    except msgspec.ValidationError:
        lines, mendable = [], False  # the head decoder says which field
    except (msgspec.DecodeError, RecursionError):
        mendable = True
    head_text = raw
    if mendable:
        head_text, lines = json_text.mend_message(raw)
    head = decode(_head_decoder, head_text, "")
    if head.claim is None and not lines:
        raise Rejected("invalid_field", "events", "a message holds at least one event")
    if head.claim is not None and lines:
        raise Rejected("invalid_field", "claim", "a message holds either events or a claim")
    return Message(head, lines)


def decode_event(line: bytes, field: str) -> Event:
    """The event on one line. Raises Rejected with the path of the refused field below `field`."""
    try:
        return decode(_event_decoder, line, field)
    except Rejected as rejected:
        if rejected.reason == "not_json" and (number := _NOT_FINITE.search(line)):
            where = f"{field}.{number['key'].decode()}"
            raise Rejected(
                "not_finite", where, f"{number['value'].decode()} is no number"
            ) from None
        raise


def check_addressed(head: Head, event: Event, field: str) -> None:
    """Events of a run come with its id, the answer to an invocation without. Raises Rejected."""
    if isinstance(event, InvocationEnded):
        if head.run_id is not None:
            raise Rejected("invalid_field", "run_id", f"{field} is no event of a run")
    elif head.run_id is None:
        raise Rejected("invalid_field", "run_id", "missing required field `run_id`")


def encode_event(event: Event) -> bytes:
    """One event as the minified line that every resend repeats byte for byte."""
    return _encoder.encode(event)


def seal(head: Head, lines: list[bytes]) -> bytes:
    """The message body: bytes that SQS accepts, whatever the texts inside."""
    start = _encoder.encode(head)[:-1]
    return sqs_safe(b"".join([start, b',"events":[', b",".join(lines), b"]}"]))


def sqs_safe(body: bytes) -> bytes:
    """The same JSON without the characters that SQS refuses: those XML 1.0 has no place for.

    JSON escapes the control characters anyway, which leaves U+FFFE and U+FFFF. Escaping all that is
    not ASCII would do too, at twice the size for CJK text.
    """
    return body.replace(b"\xef\xbf\xbe", rb"\ufffe").replace(b"\xef\xbf\xbf", rb"\uffff")


def digest(line: bytes) -> str:
    """16 hex digits of SHA-256 over an event's line: equal is a duplicate, different a conflict."""
    return hashlib.sha256(line).hexdigest()[:16]


def decode(decoder: msgspec.json.Decoder[_T], text: bytes, field: str) -> _T:
    """What the decoder makes of it. Raises Rejected with the path of the refused field below
    `field`.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise rejected(str(error), field) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected("not_json", field, str(error)) from None


def rejected(error: str, field: str) -> Rejected:
    """What msgspec says of a refused value, as Rejected with the path below `field`."""
    match = _FIELD.match(error)
    what, path = (match["what"], match["path"]) if match else (error, "")
    if what.startswith("Invalid "):  # goes on with the value, which may be anybody's text
        what = "not one of the values that are allowed here"
    where = ".".join(part for part in (field, path) if part).replace(".[", "[")
    if path == "type" or "missing required field `type`" in what:
        return Rejected("unknown_type", where, what)
    if path == "v" and not field:
        return Rejected("unknown_version", where, what)
    if missing := re.search(r"(?:missing required|contains unknown) field `(\w+)`", what):
        where = ".".join(part for part in (where, missing[1]) if part)
    return Rejected("invalid_field", where, what)
