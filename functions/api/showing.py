"""From what stands in the table to what the API answers."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from functions.api import shapes
from functions.core import keys, times
from functions.core.api_ports import IndexedRun, RunRecord
from functions.core.items import Item
from functions.core.model import (
    PhaseSummary,
    PreviewEntry,
    Run,
    Spread,
    Totals,
    sum_exactly,
)
from functions.core.phases import NO_PHASE

_SAME: Final = (
    "name", "phase", "phase_hint", "agent", "parent_id", "session_id", "model", "provider",
    "price_table", "error",
)  # fmt: skip
_COUNTS: Final = (
    "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
    "payload_bytes",
)  # fmt: skip
_MONEY: Final = ("cost_usd", "cost_computed_usd")


def money(amount: Decimal) -> str:
    """All digits, and never an exponent."""
    return f"{amount:f}"


def status_of(run: Run) -> str:
    return run.status.value


def run_fields(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.ref.run_id,
        "pipeline": run.start.pipeline,
        "status": status_of(run),
        "started_at": times.text_of(run.start.order.at),
        "ended_at": times.text_of(run.end.order.at) if run.end else None,
        "start_implicit": run.start.implicit,
        "session_id": run.start.session_id,
        "attributes": _raw(run.start.attributes),
        "error": run.end.error if run.end else None,
    }


def indexed_fields(run: IndexedRun) -> dict[str, Any]:
    """As much as the index tells of a run that cannot be seen itself yet."""
    return {
        "run_id": run.ref.run_id,
        "pipeline": run.pipeline,
        "status": run.status,
        "started_at": times.text_of(run.started_at),
    }


def sums_of(record: RunRecord) -> shapes.Sums:
    """Of totals and summary the one that covers more calls; the summary when they are equal."""
    live, summary = record.totals, record.summary
    if summary is not None and summary.totals.agents_total >= live.agents_total:
        return _sums("summary", summary.totals, summary.spread)
    return _sums("live", live)


def phases_of(record: RunRecord) -> shapes.Phases:
    if record.summary is None:
        entries = _phases_in_preview(record.preview)
        return shapes.Phases("preview", True, len(record.preview), entries)
    covered = record.summary.totals.agents_total
    entries = [_phase(phase) for phase in record.summary.phases]
    return shapes.Phases("summary", covered < record.totals.agents_total, covered, entries)


def preview_of(record: RunRecord) -> shapes.Preview:
    shown = len(record.preview)
    covered = record.summary.totals.agents_total if record.summary else 0
    total = max(shown, record.totals.agents_total, covered)
    label = f"first {shown:,} of {total:,}" if shown < total else f"all {total:,}"
    return shapes.Preview(label, total, [_preview_call(entry) for entry in record.preview])


def call(item: Item) -> shapes.Call:
    started, ended = int(item["started_at"]), int(item["ended_at"])
    given: dict[str, Any] = {name: item[name] for name in _SAME if name in item}
    given |= {name: int(item[name]) for name in _COUNTS if name in item}
    given |= {name: money(item[name]) for name in _MONEY if name in item}
    if "attributes" in item:
        given["attributes"] = _raw(item["attributes"])
    if "cut" in item:
        given["cut"] = item["cut"].split(",")
    return shapes.Call(
        step_id=item[keys.SORT].removeprefix(keys.STEP_PREFIX),
        kind=item["kind"],
        status=item["status"],
        started_at=times.text_of(started),
        ended_at=times.text_of(ended),
        duration_ms=max(0, ended - started) / 1_000_000,
        **given,
    )


def result(run: Run, item: Item | None) -> shapes.Result | None:
    if item is None or not result_stands(run, item):
        return None
    return shapes.Result(
        result=item.get("result"),
        result_bytes=int(item.get("result_bytes", 0)),
        result_truncated="cut" in item,
        error=item.get("error"),
    )


def result_stands(run: Run, item: Item) -> bool:
    """Whether it is the result of the end that the run shows: another end's may stand there until
    it is replaced."""
    return run.end is not None and run.end.order == (int(item["at"]), item["digest"])


def logs(newest_first: Sequence[Item], most_lines: int, most_bytes: int) -> shapes.Logs:
    """The newest lines that fit, oldest first; of the first entry shown perhaps only the last."""
    shown: list[shapes.LogEntry] = []
    for item in newest_first:
        lines: list[str] = []
        for line in reversed(item["lines"]):
            most_lines -= 1
            most_bytes -= len(line.encode())
            if most_lines < 0 or most_bytes < 0:
                break
            lines.append(line)
        if lines:
            shown.append(
                shapes.LogEntry(
                    log_id=item[keys.SORT].removeprefix(keys.LOG_PREFIX),
                    at=times.text_of(int(item["at"])),
                    lines=lines[::-1],
                    truncated="cut" in item,
                )
            )
        if len(lines) < len(item["lines"]):
            return shapes.Logs(older=True, entries=shown[::-1])
    return shapes.Logs(older=False, entries=shown[::-1])


def _raw(text: str | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text.encode())


def _sums(source: Any, totals: Totals, spread: Spread | None = None) -> shapes.Sums:
    values: dict[str, Any] = {
        **totals.as_attributes(),
        "cost_usd_total": money(totals.cost_usd_total),
    }
    if spread is not None:
        values |= {name: float(getattr(spread, name)) for name in ("p50_ms", "p95_ms", "max_ms")}
    return shapes.Sums(source, **values)


def _phase(phase: PhaseSummary) -> shapes.Phase:
    return shapes.Phase(
        phase=phase.phase,
        calls=phase.calls,
        failed=phase.failed,
        cost_usd=money(phase.cost_usd),
        cost_unknown=phase.cost_unknown,
        input_tokens=phase.input_tokens,
        output_tokens=phase.output_tokens,
        cached_tokens=phase.cached_tokens,
        first_start=times.text_of(phase.first_start),
        last_end=times.text_of(phase.last_end),
        wall_ms=float(phase.wall_ms),
        busy_ms=float(phase.busy_ms),
        p50_ms=float(phase.p50_ms),
        p95_ms=float(phase.p95_ms),
        max_ms=float(phase.max_ms),
        agents=list(phase.agents),
        models=list(phase.models),
        rolled_up=phase.rolled_up,
    )


def _preview_call(entry: PreviewEntry) -> shapes.PreviewCall:
    return shapes.PreviewCall(
        step_id=entry.step_id,
        status=entry.status,  # type: ignore[arg-type]
        kind=entry.kind,
        duration_ms=entry.milliseconds,
        cost_usd=None if entry.cost is None else money(entry.cost),
        phase=entry.phase,
        name=entry.name,
    )


def _phases_in_preview(entries: Iterable[PreviewEntry]) -> list[shapes.Phase]:
    groups: dict[str, list[PreviewEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.phase or NO_PHASE, []).append(entry)
    return [
        shapes.Phase(
            phase=phase,
            calls=len(group),
            failed=sum(entry.status == "failed" for entry in group),
            cost_usd=money(sum_exactly(entry.cost for entry in group)),
            cost_unknown=sum(entry.cost is None for entry in group),
        )
        for phase, group in groups.items()
    ]
