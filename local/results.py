"""What the stage made of a run: read from the table with the functions' own keys and parsers."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from functions.adapters.dynamodb import DynamoDBTable
from functions.core import counts, keys
from functions.core.keys import RunRef
from functions.core.model import Totals
from local.stage import Stage


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One phase of a run's summary; times are milliseconds."""

    phase: str
    calls: int
    failed: int
    cost_usd: Decimal
    cost_unknown: int
    p50_ms: Decimal
    p95_ms: Decimal
    wall_ms: Decimal

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "PhaseResult":
        return cls(
            phase=entry["phase"],
            calls=int(entry["calls"]),
            failed=int(entry["failed"]),
            cost_usd=entry["cost_usd"],
            cost_unknown=int(entry["cost_unknown"]),
            p50_ms=entry["p50_ms"],
            p95_ms=entry["p95_ms"],
            wall_ms=entry["wall_ms"],
        )


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as the table shows it: with its summary's totals, until there is one the live ones."""

    ref: RunRef
    status: str
    pipeline: str
    totals: Totals
    summarised: bool
    phases: tuple[PhaseResult, ...]

    def covers(self, steps: int) -> bool:
        """Whether the run has ended and its summary counts that many steps, or more."""
        return self.status != "running" and self.summarised and self.totals.agents_total >= steps


def read_run(stage: Stage, ref: RunRef) -> RunResult | None:
    """The run as it is now, or None before its first message was stored."""
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    run = table.get(keys.item_of_run(ref, keys.RUN))
    if run is None:
        return None
    summary = table.get(keys.item_of_run(ref, keys.SUMMARY))
    counted = summary or table.get(keys.item_of_run(ref, keys.TOTALS)) or {}
    return RunResult(
        ref=ref,
        status=run["status"],
        pipeline=run.get("pipeline", ""),
        totals=counts.parse_totals(counted),
        summarised=summary is not None,
        phases=tuple(PhaseResult.of(entry) for entry in counted.get("phases_summary", ())),
    )
