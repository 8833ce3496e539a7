"""Recordings: sealed bodies, one a line (`.jsonl`, `.jsonl.gz`), as the SDK's FileSender writes."""

import decimal
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from runtally import wire

_EXACT = decimal.Context(prec=100, traps=[decimal.Inexact])


class InvalidRecording(ValueError):  # noqa: N818 - the fact, as the caller reads it
    """A line is no message body: the file is cut short, or something else."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of a file: its bodies, byte for byte and in order."""

    tenant_id: str
    run_id: str
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ExpectedTotals:
    """What a stage must show for a run, by the names of its totals; no `status` without an end."""

    run_id: str
    status: str | None
    agents_total: int
    failed_total: int
    cancelled_total: int
    cost_usd_total: Decimal
    cost_unknown_total: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int


def load(path: Path) -> list[Recording]:
    """The runs of a file, in the order in which they first appear. Raises InvalidRecording."""
    content = path.read_bytes()
    try:
        text = gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, gzip.BadGzipFile) as error:
        raise InvalidRecording(f"{path}: {error}") from error
    runs: dict[tuple[str, str], list[bytes]] = {}
    for number, body in enumerate(text.splitlines(), 1):
        try:
            head = wire.open_message(body.decode()).head
        except (wire.Rejected, UnicodeDecodeError) as error:
            raise InvalidRecording(f"{path}, line {number}: {error}") from error
        if head.run_id is None:
            raise InvalidRecording(f"{path}, line {number}: a message of no run")
        runs.setdefault((head.tenant_id, head.run_id), []).append(body)
    return [Recording(*whose, tuple(messages)) for whose, messages in runs.items()]


def expected_totals(messages: Iterable[bytes]) -> ExpectedTotals:
    """Add up the bodies of one run with `json` and `Decimal`, by no code that a stage runs.

    A step counts once however often its id comes; the earliest end decides the status.
    """
    steps: dict[str, dict[str, Any]] = {}
    ends: list[tuple[int, str]] = []
    run_id = ""
    for body in messages:
        message = json.loads(body, parse_int=_integer)
        run_id = message["run_id"]
        for event in message["events"]:
            if event["type"] == "step":
                steps.setdefault(event["step_id"], event)
            elif event["type"] == "run.ended":
                ends.append((event["at"], event["status"]))
    cost = Decimal(0)
    for step in steps.values():
        cost = _EXACT.add(cost, Decimal(_cost_of(step) or "0"))
    statuses = [step["status"] for step in steps.values()]
    return ExpectedTotals(
        run_id=run_id,
        status=min(ends)[1] if ends else None,
        agents_total=len(steps),
        failed_total=statuses.count("failed"),
        cancelled_total=statuses.count("cancelled"),
        cost_usd_total=cost,
        cost_unknown_total=sum(_cost_of(step) is None for step in steps.values()),
        input_tokens=sum(step.get("input_tokens", 0) for step in steps.values()),
        output_tokens=sum(step.get("output_tokens", 0) for step in steps.values()),
        cached_tokens=sum(step.get("cached_tokens", 0) for step in steps.values()),
    )


def _cost_of(step: dict[str, Any]) -> str | None:
    """What was reported, else what was computed by list prices."""
    cost: str | None = step.get("cost_usd", step.get("cost_computed_usd"))
    return cost


def retime(messages: Sequence[bytes], now_ns: int) -> list[bytes]:
    """The same bodies, as if what they record had ended just now: their latest time is `now_ns`.

    Every time and the time in front of every id move by one offset, so that durations, order and
    parents stay. The same arguments give the same bytes. Why: a stage refuses events that are older
    than its retention.
    """
    opened = [wire.open_message(body.decode()) for body in messages]
    events = [[wire.decode_event(line, "") for line in message.lines] for message in opened]
    offset = now_ns - max(max(_times(event)) for some in events for event in some)
    return [
        wire.seal(message.head, [wire.encode_event(_moved(event, offset)) for event in some])
        for message, some in zip(opened, events, strict=True)
    ]


def readdress(
    messages: Sequence[bytes], *, tenant_id: str | None = None, run_id: str | None = None
) -> list[bytes]:
    """The same events as another tenant's or another run's, to send one recording many times."""
    changes = {"tenant_id": tenant_id, "run_id": run_id}
    given = {name: value for name, value in changes.items() if value is not None}
    opened = [wire.open_message(body.decode()) for body in messages]
    return [wire.seal(msgspec.structs.replace(m.head, **given), m.lines) for m in opened]


def _integer(digits: str) -> int | str:
    """A payload may hold more digits than `int` takes; nothing that is added up does."""
    return int(digits) if len(digits) < 20 else digits


def _times(event: wire.Event) -> Sequence[int]:
    match event:
        case wire.RunStarted() | wire.RunEnded():
            return [event.at]
        case wire.RunLog():
            return [event.at, int(event.log_id[:19])]
        case wire.Step():
            return [event.started_at, event.ended_at, int(event.step_id[:19])]
    return [0]


def _moved(event: wire.Event, offset: int) -> wire.Event:
    def moved(step_id: str) -> str:
        if "-" not in step_id:  # a parent of which only the part without a time is known
            return step_id
        return f"{int(step_id[:19]) + offset:019d}{step_id[19:]}"

    match event:
        case wire.RunStarted() | wire.RunEnded():
            return msgspec.structs.replace(event, at=event.at + offset)
        case wire.RunLog():
            return msgspec.structs.replace(event, at=event.at + offset, log_id=moved(event.log_id))
        case wire.Step():
            return msgspec.structs.replace(
                event,
                step_id=moved(event.step_id),
                parent_id=moved(event.parent_id) if event.parent_id else None,
                started_at=event.started_at + offset,
                ended_at=event.ended_at + offset,
            )
    return event
