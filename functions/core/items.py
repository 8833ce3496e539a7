"""What stands on the items that ingest writes: built from events, read back for the others.

Text is cut here, and only here, to the caps; `cut` names what was shortened. Absent means unknown
or empty.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from sys import intern
from typing import Any, Final

from functions.core import caps, keys
from functions.core.keys import RunRef
from functions.core.model import (
    EXACT,
    End,
    Order,
    Run,
    RunStatus,
    Stale,
    Start,
    StepRow,
)
from functions.core.ports import Recorded
from functions.core.schema import SCHEMA_VERSION, VERSION, refuse_newer
from runtally.wire import RunEnded, RunLog, Step

type Item = dict[str, Any]
"""Attribute names to str, int, Decimal, bool, bytes, None, and lists and dicts of these."""

DELETED: Final = "deleted_at"
STALE: Final = "stale_at"
STALE_COUNTED: Final = "stale_counted"
STALE_UNTOLD: Final = "stale_untold"
STALE_MARK: Final = (STALE, STALE_COUNTED, STALE_UNTOLD)

COUNTED_ATTRIBUTES: Final = (
    keys.SORT, "kind", "status", "started_at", "ended_at", "stored_at", "name", "phase",
    "phase_hint", "agent", "model", "parent_id", "cost_usd", "cost_computed_usd", "input_tokens",
    "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip
"""What of a step item `step_row` reads: the projection of a recount."""

_DIGITS = 38
"""What a number in DynamoDB may have; adding one with more would be refused for ever."""
_NAMES = (
    "name", "phase", "phase_hint", "agent", "session_id", "model", "provider", "price_table",
)  # fmt: skip
_TOKENS = (
    "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip


def money(text: str) -> Decimal:
    """Exact, without trailing zeros: DynamoDB counts them as digits."""
    return EXACT.normalize(Decimal(text))


def run_item(run: Run) -> Item:
    """RUN as it is when it is opened: no end yet, so it stands among the open runs."""
    open_run = keys.open_runs(run.ref)
    return {
        **key_attributes(keys.item_of_run(run.ref, keys.RUN)),
        **start_attributes(run.ref, run.start),
        VERSION: SCHEMA_VERSION,
        "buckets": run.buckets,
        "status": RunStatus.RUNNING.value,
        keys.OPEN_RUNS_PARTITION: open_run.partition,
        keys.OPEN_RUNS_SORT: open_run.sort,
        keys.EXPIRES: run.expires_at,
    }


def start_attributes(ref: RunRef, start: Start) -> Item:
    """What follows from a run's start, replaced as a whole whenever another start takes over."""
    of_tenant = keys.runs_of_tenant(ref, start.order.at)
    return {
        "start": present(
            at=start.order.at,
            digest=start.order.digest,
            implicit=start.implicit or None,
            session_id=start.session_id,
            attributes=start.attributes,
            stale_after_s=start.stale_after_s,
        ),
        "pipeline": start.pipeline,
        keys.BY_TENANT_PARTITION: of_tenant.partition,
        keys.BY_TENANT_SORT: of_tenant.sort,
    }


def end_attributes(end: End) -> Item:
    return {
        "end": present(
            at=end.order.at, digest=end.order.digest, status=end.status.value, error=end.error
        ),
        "status": end.status.value,
    }


def stale_attributes(stale: Stale) -> Item:
    return {
        STALE: stale.since,
        STALE_COUNTED: stale.counted,
        **({STALE_UNTOLD: True} if stale.untold else {}),
        "status": RunStatus.STALE.value,
    }


def parse_run(item: Mapping[str, Any]) -> Run:
    """Raises NewerSchema."""
    refuse_newer(item)
    ref, _ = keys.parse_run_partition(item[keys.PARTITION])
    start = item.get("start", {})
    end = item.get("end")
    return Run(
        ref=ref,
        buckets=int(item.get("buckets", 1)),
        start=Start(
            order=Order(int(start.get("at", 0)), start.get("digest", "")),
            pipeline=item.get("pipeline", ""),
            session_id=start.get("session_id"),
            attributes=start.get("attributes"),
            stale_after_s=int(start["stale_after_s"]) if "stale_after_s" in start else None,
            implicit=start.get("implicit", False),
        ),
        expires_at=int(item.get(keys.EXPIRES, 0)),
        end=None
        if end is None
        else End(Order(int(end["at"]), end["digest"]), RunStatus(end["status"]), end.get("error")),
        deleted=DELETED in item,
        stale=_parse_stale(item) if STALE in item else None,
    )


def _parse_stale(item: Mapping[str, Any]) -> Stale:
    counted = int(item.get(STALE_COUNTED, 0))
    return Stale(int(item[STALE]), counted, untold=item.get(STALE_UNTOLD, False))


def step_item(run: Run, recorded: Recorded[Step]) -> Item:
    step = recorded.event
    cut: list[str] = []

    def text(field: str, limit: int) -> str | None:
        whole: str | None = getattr(step, field)
        short = None if whole is None else caps.cut(whole, limit)
        if short != whole:
            cut.append(field)
        return short

    item = present(
        **{field: text(field, caps.NAME) for field in _NAMES},
        **{field: getattr(step, field) for field in _TOKENS},
        kind=step.kind,
        status=step.status,
        started_at=step.started_at,
        ended_at=step.ended_at,
        stored_at=recorded.stored_at,
        parent_id=step.parent_id,
        cost_usd=None if step.cost_usd is None else money(step.cost_usd),
        cost_computed_usd=None if step.cost_computed_usd is None else money(step.cost_computed_usd),
        error=text("error", caps.ERROR),
        payload_bytes=len(bytes(step.payload)) if step.payload else None,
    )
    if step.attributes:
        item["attributes"], dropped = caps.cut_attributes(step.attributes, caps.STEP_ATTRIBUTES)
        cut += ["attributes"] * bool(dropped)
    if cut:
        item["cut"] = ",".join(cut)
    return {
        **key_attributes(keys.step_item(run.ref, run.buckets, step.step_id)),
        **item,
        **_origin(run, recorded),
    }


def step_row(item: Mapping[str, Any]) -> StepRow:
    """A step as counting sees it. Raises KeyError or ValueError when it is no step item.

    Texts are interned: most of them stand in thousands of a run's steps, and would be half of the
    memory that a recount takes.
    """
    sort_key: str = item[keys.SORT]
    if not sort_key.startswith(keys.STEP_PREFIX):
        raise ValueError(f"not a step: {sort_key!r}")
    cost = item.get("cost_usd", item.get("cost_computed_usd"))
    if cost is not None and len(Decimal(cost).as_tuple().digits) > _DIGITS:
        raise ValueError(f"cost of more than {_DIGITS} digits")
    return StepRow(
        step_id=sort_key.removeprefix(keys.STEP_PREFIX),
        kind=intern(item["kind"]),
        status=intern(item["status"]),
        started_at=int(item["started_at"]),
        ended_at=int(item["ended_at"]),
        stored_at=int(item.get("stored_at", item["ended_at"])),
        name=intern(item.get("name", "")),
        phase=intern(item.get("phase", "")),
        phase_hint=intern(item.get("phase_hint", "")),
        agent=intern(item.get("agent", "")),
        model=intern(item.get("model", "")),
        parent_id=intern(item["parent_id"]) if "parent_id" in item else None,
        cost=None if cost is None else Decimal(cost),
        **{field: int(item.get(field, 0)) for field in _TOKENS},
    )


def log_item(run: Run, recorded: Recorded[RunLog]) -> Item:
    log = recorded.event
    lines, whole = _leading_lines(log.lines, caps.LOG_LINES)
    return {
        **key_attributes(keys.log_item(run.ref, log.log_id)),
        "at": log.at,
        "lines": lines,
        **present(cut=None if whole else "lines"),
        **_origin(run, recorded),
    }


def result_item(run: Run, recorded: Recorded[RunEnded]) -> Item:
    end = recorded.event
    result = end.result
    short = None if result is None else caps.cut(result, caps.RESULT)
    return {
        **key_attributes(keys.item_of_run(run.ref, keys.RESULT)),
        **present(
            at=end.at,
            result=short,
            result_bytes=None if result is None else len(result.encode()),
            cut=None if short == result else "result",
            error=None if end.error is None else caps.cut(end.error, caps.RUN_ERROR),
        ),
        **_origin(run, recorded),
    }


def key_attributes(key: keys.ItemKey) -> Item:
    return {keys.PARTITION: key.partition, keys.SORT: key.sort}


def _origin(run: Run, recorded: Recorded[Any]) -> Item:
    return {
        "digest": recorded.digest,
        "pointer": str(recorded.pointer),
        keys.EXPIRES: run.expires_at,
    }


def present(**attributes: object) -> Item:
    return {name: value for name, value in attributes.items() if value is not None}


def _leading_lines(lines: Sequence[str], limit: int) -> tuple[list[str], bool]:
    """The first lines that fit, the last of them cut where it must be, and whether that is all."""
    kept: list[str] = []
    left = limit
    for line in lines:
        left -= 3  # what an element of a list costs beside its bytes
        if left <= 0:
            return kept, False
        short = caps.cut(line, left)
        kept.append(short)
        if short != line:
            return kept, False
        left -= len(line.encode())
    return kept, True


def attributes_text(attributes: Mapping[str, object] | None, limit: int) -> str | None:
    """Attributes as they stand on an item, or None without any."""
    return caps.cut_attributes(attributes, limit)[0] if attributes else None


def attributes_of(text: str | None) -> dict[str, object]:
    return json.loads(text) if text else {}
