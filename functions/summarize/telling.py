"""What a recount tells the logs: one line a run that has ended, one each of its phases that failed.

Dashboards read them. Of what a tenant sent they hold the names of pipeline and phases, which group
them, and no other text: a phase that was only named after a step is not told by name.
"""

from collections.abc import Iterable
from typing import Any, Final

from functions.adapters.telemetry import Telemetry
from functions.core.model import RunStatus
from functions.core.times import SECOND, text_of
from functions.summarize.recount import Recounted

RUNS_TOLD: Final = 50
"""On the line of a batch: more would make it longer than it is worth."""
RUN_LINE: Final = "run summarized"
PHASE_LINE: Final = "phase failed"

_SETTLED_NS: Final = 15 * 60 * SECOND
"""Stored before any step that may still be on its way through the stream of a healthy stage."""
_PHASES: Final = 10
_HOUR: Final = len("2026-11-30T10")


def tell_of_runs(found: Iterable[Recounted], telemetry: Telemetry) -> None:
    """One line for each summary that now stands for a run which ended or is stale; a later one of
    the same run replaces it."""
    for recounted in found:
        if recounted.stands and recounted.run.status is not RunStatus.RUNNING:
            _tell(recounted, telemetry)


def lasting_drift(found: Iterable[Recounted], now_ns: int) -> int:
    """Drift that no record which is still in the stream explains: TOTALS counted too much, or
    lack steps although the run's last was stored long ago, whenever it may have ended."""
    return sum(
        recounted.drift
        for recounted in found
        if recounted.overcounted or now_ns - recounted.stored_ns > _SETTLED_NS
    )


def _tell(recounted: Recounted, telemetry: Telemetry) -> None:
    run, summary = recounted.run, recounted.summary
    ended_at = run.end.order.at if run.end else recounted.newest_ns
    of_run: dict[str, Any] = {
        **run.ref._asdict(),
        "pipeline": run.start.pipeline,
        "status": run.status.value,
        "ended_hour": text_of(ended_at)[:_HOUR],
    }
    figures = {
        "calls": summary.totals.agents_total,
        "failed": summary.totals.failed_total,
        # Queries add floats up; what a run cost to the last digit stands in its SUMMARY.
        "cost_usd": float(summary.totals.cost_usd_total),
        "cost_unknown": summary.totals.cost_unknown_total,
        "wall_ms": max(0, ended_at - run.start.order.at) // 1_000_000,
    }
    if summary.spread:
        figures["p95_ms"] = int(summary.spread.p95_ms)
    telemetry.logger.info(RUN_LINE, extra={**of_run, **figures})
    failed = sorted((p for p in summary.phases if p.failed), key=lambda p: -p.failed)
    for phase in failed[:_PHASES]:
        name = phase.phase if phase.phase in recounted.named_phases else ""
        counts = {"phase": name, "calls": phase.calls, "failed": phase.failed}
        telemetry.logger.info(PHASE_LINE, extra={**of_run, **counts})
