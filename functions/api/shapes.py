"""What the API answers, in JSON: these structs are the contract, and the OpenAPI document is made
from them.

Money is a decimal string, times are RFC 3339 with nanoseconds, milliseconds are numbers. A field
that is absent is unknown or empty.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

Money = Annotated[
    str,
    Meta(pattern=r"^[0-9]+(\.[0-9]+)?$", description="US dollars, exact, without exponent"),
]
Time = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9}Z$",
        description="RFC 3339, UTC, nanoseconds",
    ),
]
Milliseconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Status = Literal["running", "succeeded", "failed", "cancelled", "stale"]
CallStatus = Literal["succeeded", "failed", "cancelled"]
Cursor = Annotated[str, Meta(description="Pass it back as `cursor` for what comes next")]
Attributes = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]


class Sums(Struct, frozen=True, omit_defaults=True):
    """Exact sums over all calls counted so far. `source` is `summary` once every call is in it;
    then there are percentiles, too: nearest ranks over every call."""

    source: Literal["live", "summary"]
    agents_total: Count
    failed_total: Count
    cancelled_total: Count
    cost_usd_total: Money
    cost_unknown_total: Count
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count
    cache_write_tokens: Count
    reasoning_tokens: Count
    p50_ms: Milliseconds | None = None
    p95_ms: Milliseconds | None = None
    max_ms: Milliseconds | None = None


class Phase(Struct, frozen=True, omit_defaults=True):
    """One phase of a run. Percentiles are nearest ranks over every call of the phase."""

    phase: str
    calls: Count
    failed: Count
    cost_usd: Money
    cost_unknown: Count
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_tokens: Count | None = None
    first_start: Time | None = None
    last_end: Time | None = None
    wall_ms: Milliseconds | None = None
    busy_ms: Milliseconds | None = None
    p50_ms: Milliseconds | None = None
    p95_ms: Milliseconds | None = None
    max_ms: Milliseconds | None = None
    agents: list[str] | None = None
    models: list[str] | None = None
    rolled_up: Count = 0


class Phases(Struct, frozen=True):
    """A run by phase, in order of first start.

    From its summary; while there is none, from the preview: then counts and costs are those of its
    calls alone, names are short, and `partial` is true. It is true, too, while a summary is behind.
    """

    source: Literal["summary", "preview"]
    partial: bool
    calls: Count
    entries: list[Phase]


class PreviewCall(Struct, frozen=True, omit_defaults=True):
    step_id: str
    status: CallStatus
    kind: str
    duration_ms: Count
    cost_usd: Money | None = None
    phase: str = ""
    name: str = ""


class Preview(Struct, frozen=True):
    """The first calls that were counted, at most 100; `label` says "first 100 of 1,500"."""

    label: str
    of: Count
    calls: list[PreviewCall]


class Run(Struct, frozen=True, omit_defaults=True):
    """`start_implicit`: `run.started` has not arrived; the start is the earliest time seen."""

    run_id: str
    pipeline: str
    status: Status
    started_at: Time
    ended_at: Time | None = None
    start_implicit: bool = False
    session_id: str | None = None
    attributes: Attributes | None = None
    error: str | None = None


class ListedRun(Run, frozen=True, kw_only=True):
    totals: Sums
    preview: Preview
    phases: Phases


class RunPage(Struct, frozen=True, omit_defaults=True):
    """Newest first. With `next` there may be more, even when this page is short or empty."""

    runs: list[ListedRun]
    next: Cursor | None = None


class Call(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One recorded agent, model or tool call; tokens and cost are its own, not its children's.

    `cut` names the texts that are shortened here; its event has them whole. `parent_id` is a step
    id, or the last 11 characters of one.
    """

    step_id: str
    kind: str
    status: CallStatus
    started_at: Time
    ended_at: Time
    duration_ms: Milliseconds
    name: str | None = None
    phase: str | None = None
    phase_hint: str | None = None
    agent: str | None = None
    parent_id: str | None = None
    session_id: str | None = None
    model: str | None = None
    provider: str | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    cost_usd: Money | None = None
    cost_computed_usd: Money | None = None
    price_table: str | None = None
    error: str | None = None
    attributes: Attributes | None = None
    payload_bytes: Count | None = None
    cut: list[str] | None = None


class Result(Struct, frozen=True, omit_defaults=True):
    """What the run's end said. A result over 72 KB is cut here and whole under `…/result`."""

    result: str | None = None
    result_bytes: Count = 0
    result_truncated: bool = False
    error: str | None = None


class LogEntry(Struct, frozen=True, omit_defaults=True):
    log_id: str
    at: Time
    lines: list[str]
    truncated: bool = False


class Logs(Struct, frozen=True):
    """The newest lines, at most 200 and 96 KB, oldest first; `older` when there are more before."""

    older: bool
    entries: list[LogEntry]


class RunHead(Struct, frozen=True, omit_defaults=True):
    run: Run
    totals: Sums | None = None
    phases: Phases | None = None
    result: Result | None = None
    logs: Logs | None = None


class RunDetail(RunHead, frozen=True, omit_defaults=True, kw_only=True):
    """A run with its calls in step order. Totals, phases, result and logs come with the first page.

    There is a `next` only when not every call fits the answer.
    """

    calls: list[Call]
    next: Cursor | None = None


class Link(Struct, frozen=True, omit_defaults=True):
    """A download that needs no key, for fifteen minutes. Send `headers` with the request.

    `content_encoding` `gzip`: the bytes are gzipped JSON.
    """

    url: str
    expires_at: Time
    headers: dict[str, str] | None = None
    content_encoding: str | None = None


State = Literal["ok", "missing", "corrupt", "none"]


class Payload(Struct, frozen=True, omit_defaults=True):
    """The payload of a call, byte for byte as it was sent.

    `payload_state`: `ok`; `none`, the call was recorded without one; `missing`, its object is gone;
    `corrupt`, the object holds other bytes than were recorded. One too large for an answer is
    behind `link`, inside the call's event.
    """

    step_id: str
    payload_state: State
    payload_bytes: Count = 0
    payload: Annotated[Raw, Meta(extra_json_schema={"description": "any JSON"})] | UnsetType = UNSET
    link: Link | None = None


class Event(Struct, frozen=True, omit_defaults=True):
    """The event that recorded a call, byte for byte: sent again, it is a duplicate."""

    step_id: str
    event_state: State
    event: Attributes | UnsetType = UNSET
    link: Link | None = None


class WholeResult(Struct, frozen=True, omit_defaults=True):
    result_state: State
    result_bytes: Count = 0
    result: str | None = None
    link: Link | None = None


class Figures(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Over many runs: counts, costs and tokens are exact sums, `max_ms` is the longest call.

    Percentiles of a union do not follow from those of its parts: `p50_ms` and `p95_ms` are the
    median run's, each run weighted by its calls.
    """

    runs: Count
    calls: Count
    failed: Count
    cost_usd: Money
    cost_unknown: Count
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count
    p50_ms: Milliseconds | None = None
    p95_ms: Milliseconds | None = None
    max_ms: Milliseconds | None = None


class Interval(Figures, frozen=True, omit_defaults=True, kw_only=True):
    """The runs that started within an hour or a day, UTC, from `from` on."""

    from_: Time = field(name="from")


class PhaseFigures(Figures, frozen=True, omit_defaults=True, kw_only=True):
    """A phase over many runs. `times`, with `by` and `pipeline`: oldest first, no empty ones."""

    phase: str
    times: list[Interval] | None = None


class PipelineFigures(Figures, frozen=True, omit_defaults=True, kw_only=True):
    """A pipeline's runs. `partial_runs` have no complete summary: their phases are those of the
    preview, or of a summary that is behind; the sums of the pipeline itself have them whole.
    `times`, with `by`: oldest first, no empty ones."""

    pipeline: str
    by_status: dict[str, Count]
    partial_runs: Count
    times: list[Interval] | None = None
    phases: list[PhaseFigures]


class Insights(
    Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="view", tag="summary"
):
    """Runs that started in [from, to), by pipeline and phase.

    When time did not suffice, `complete` is false and only runs from `covers_from` on are in it:
    ask for less at once.
    """

    runs: Count
    complete: bool
    partial_runs: Count
    covers_from: Time | None = None
    pipelines: list[PipelineFigures]


class ComparedRun(Struct, frozen=True):
    run: Run
    totals: Sums
    partial: bool


class Change(Struct, frozen=True, omit_defaults=True):
    """From `a` to `b` in per cent of `a`; absent where `a` has nothing to compare with."""

    calls: float | None = None
    failed: float | None = None
    cost_usd: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None


class ComparedPhase(Struct, frozen=True, omit_defaults=True):
    phase: str
    a: Phase | None = None
    b: Phase | None = None
    change: Change | None = None


class Comparison(Struct, frozen=True, tag_field="view", tag="compare"):
    """Two runs, phase by phase, in the order of `a` and then of what only `b` has."""

    a: ComparedRun
    b: ComparedRun
    change: Change
    phases: list[ComparedPhase]


class EventsAccepted(Struct, frozen=True):
    """How many events were accepted, and how many never will be: the first 100 of these, each with
    its reason."""

    accepted: Count
    refused_total: Count
    refused: list["RefusedEvent"]


class RefusedEvent(Struct, frozen=True):
    field: str
    reason: str
    detail: str


class Invocation(Struct, frozen=True, omit_defaults=True):
    """One call of a service entry. Poll it until `status` is no longer `pending`.

    A result over 300,000 bytes of UTF-8 is cut between two characters: `result_truncated`, with the
    original size in `result_bytes` and the whole behind `result_link`.
    """

    invocation_id: str
    service_entry: str
    status: Literal["pending", "succeeded", "failed", "cancelled"]
    created_at: Time
    deadline_at: Time
    ended_at: Time | None = None
    result: str | None = None
    result_bytes: Count | None = None
    result_truncated: bool = False
    result_link: Link | None = None
    reason: str | None = None
    error: str | None = None


class Deletion(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The receipt of a deletion. The run itself is gone from the first moment on.

    `items`, `objects` and `versions` (of objects, delete markers included) count what has been
    erased so far: never too much, and too little only by what was under way when a function was
    stopped. Everything is looked through at least twice, minutes apart, and `finished` only when
    the last look found nothing. Until `locked_until` versions of the run's files in the lake stay,
    which a compliance lock holds: nobody can delete them before, and no reader finds them.
    """

    run_id: str
    status: Literal["running", "finished"]
    requested_at: Time
    finished_at: Time | None = None
    items: Count
    objects: Count
    versions: Count
    looks: Count
    locked_until: Time | None = None


class Problem(Struct, frozen=True, omit_defaults=True):
    """RFC 9457. `type` and `reason` are stable; `field` says where the fault is."""

    type: str
    title: str
    status: int
    detail: str
    reason: str
    field: str | None = None
    instance: str | None = None
