"""What stands on the items that summarize writes: TOTALS, PREVIEW and SUMMARY."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from functions.core import caps, keys
from functions.core.items import Item, key_attributes, present
from functions.core.model import (
    LiveTotals,
    PhaseSummary,
    Preview,
    PreviewEntry,
    Run,
    Spread,
    StepRow,
    Summary,
    Totals,
)
from functions.core.schema import SCHEMA_VERSION, VERSION, refuse_newer

MARK_PREFIX: Final = "seq_"
ENDED: Final = "ended"
PREVIEW_FULL: Final = "preview_full"
PREVIEW_STEPS: Final = "agents"
_SPREAD: Final = ("p50_ms", "p95_ms", "max_ms")

_STATUSES: Final = {status[0]: status for status in ("succeeded", "failed", "cancelled")}


def preview_entry(step: StepRow) -> list[Any]:
    """[step_id, status letter, kind, milliseconds, cost or None, phase, agent or name]."""
    return [
        step.step_id,
        step.status[0],
        step.kind,
        step.duration_ns // 1_000_000,
        step.cost,
        caps.cut(step.phase, caps.PREVIEW_NAME),
        caps.cut(step.agent or step.name, caps.PREVIEW_NAME),
    ]


def parse_totals(item: Mapping[str, Any]) -> Totals:
    """From TOTALS or SUMMARY: both carry the same attributes."""
    numbers = {name: item[name] for name in Totals().as_attributes() if name in item}
    cost = Decimal(numbers.pop("cost_usd_total", 0))
    return Totals(**{name: int(value) for name, value in numbers.items()}, cost_usd_total=cost)


def parse_live_totals(item: Mapping[str, Any]) -> LiveTotals:
    return LiveTotals(
        totals=parse_totals(item),
        marks=_marks(item),
        ended=item.get(ENDED, False),
        preview_full=item.get(PREVIEW_FULL, False),
    )


def parse_preview(item: Mapping[str, Any]) -> Preview:
    return Preview(length=len(item.get(PREVIEW_STEPS, ())), marks=_marks(item))


def parse_preview_entries(item: Mapping[str, Any]) -> list[PreviewEntry]:
    return [
        PreviewEntry(step_id, _STATUSES[letter], kind, int(milliseconds), cost, phase, name)
        for step_id, letter, kind, milliseconds, cost, phase, name in item.get(PREVIEW_STEPS, ())
    ]


def parse_summary(item: Mapping[str, Any]) -> Summary:
    """Raises NewerSchema."""
    refuse_newer(item)
    return Summary(
        totals=parse_totals(item),
        phases=tuple(map(_parse_phase, item["phases_summary"])),
        at_total=int(item["at_total"]),
        fold_version=int(item["fold_version"]),
        spread=Spread(*(item[name] for name in _SPREAD)) if _SPREAD[0] in item else None,
    )


def _parse_phase(entry: Mapping[str, Any]) -> PhaseSummary:
    whole = {"calls", "failed", "cost_unknown", "input_tokens", "output_tokens", "cached_tokens"}
    whole |= {"first_start", "last_end", "rolled_up"}
    values: dict[str, Any] = {
        name: int(value) if name in whole else tuple(value) if isinstance(value, list) else value
        for name, value in entry.items()
        if name in PhaseSummary.__slots__
    }
    return PhaseSummary(**values)


def summary_item(run: Run, summary: Summary) -> Item:
    return {
        **key_attributes(keys.item_of_run(run.ref, keys.SUMMARY)),
        **summary.totals.as_attributes(),
        VERSION: SCHEMA_VERSION,
        "at_total": summary.at_total,
        "fold_version": summary.fold_version,
        **({name: getattr(summary.spread, name) for name in _SPREAD} if summary.spread else {}),
        "phases_summary": [
            present(
                **{
                    name: list(value) if isinstance(value, tuple) else value
                    for name in phase.__slots__
                    if (value := getattr(phase, name)) or name != "rolled_up"
                }
            )
            for phase in summary.phases
        ],
        keys.EXPIRES: run.expires_at,
    }


def _marks(item: Mapping[str, Any]) -> dict[int, bytes]:
    return {
        int(name.removeprefix(MARK_PREFIX)): bytes(value)
        for name, value in item.items()
        if name.startswith(MARK_PREFIX)
    }
