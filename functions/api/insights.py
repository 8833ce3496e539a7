"""What many runs come to together, by pipeline and phase, from their summaries.

A run without a complete summary is counted with what there is, and flagged: its sums are the live
totals, its phases those of the preview.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import batched
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec import field as member

from functions.api import shapes, showing
from functions.api.figures import Part, figures_of, intervals_of, part_of_phase, part_of_run
from functions.api.runs import RUNS_AT_ONCE, At, IndexWalk, as_kept, is_gone, times_between
from functions.core import times
from functions.core.api_ports import RunQuery, RunReader, RunRecord
from functions.core.errors import Rejected
from functions.core.phases import OTHER_PHASES
from functions.core.retention import DAY_S
from runtally.wire import RunId

OTHER_PIPELINES: Final = "(other pipelines)"
_PIPELINES: Final = 50
_PHASES: Final = 50
"""More than these are rolled up, so that an answer stays far below a Lambda response."""


_WIDTHS: Final = {"hour": 3_600 * times.SECOND, "day": DAY_S * times.SECOND}
_INTERVALS: Final = 400


class InsightsWanted(Struct, frozen=True, kw_only=True):
    """`summary`: all runs that started in [from, to), `by` hour or day too; of phases only with a
    `pipeline`. `compare`: the runs `a` and `b`."""

    view: Literal["summary", "compare"]
    pipeline: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    from_: At | None = member(default=None, name="from")
    to: At | None = None
    by: Literal["hour", "day"] | None = None
    a: RunId | None = None
    b: RunId | None = None


@dataclass(slots=True)
class _Pipeline:
    runs: list[Part] = field(default_factory=list)
    by_status: Counter[str] = field(default_factory=Counter)
    partial_runs: int = 0
    phases: dict[str, list[Part]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SummarizeRuns:
    reader: RunReader
    now_ns: Callable[[], int]

    def __call__(
        self, tenant_id: str, wanted: InsightsWanted, late: Callable[[], bool] = lambda: False
    ) -> shapes.Insights:
        """All runs of the time range by pipeline and phase; when late, the newest of them.

        Raises Rejected.
        """
        since, until = times_between(wanted.from_, wanted.to)
        width_ns = _width_of(wanted, since, min(until, self.now_ns()))
        pipeline = as_kept(wanted.pipeline)
        where = {} if pipeline is None else {"pipeline": pipeline}
        walk = IndexWalk(self.reader, RunQuery(tenant_id, since, until, where), late)
        pipelines: dict[str, _Pipeline] = {}
        for chunk in batched(walk, RUNS_AT_ONCE, strict=False):
            records = self.reader.records_of([run.ref for run in chunk])
            for indexed in chunk:
                self._add(pipelines, records[indexed.ref])
            if late():
                break
        reached = walk.position
        return shapes.Insights(
            runs=sum(len(group.runs) for group in pipelines.values()),
            complete=reached is None,
            partial_runs=sum(group.partial_runs for group in pipelines.values()),
            # Runs that started in the very same nanosecond may still be missing.
            covers_from=None if reached is None else times.text_of(reached[0] + 1),
            pipelines=[
                _pipeline_figures(name, group, width_ns, of_phases=pipeline is not None)
                for name, group in pipelines.items()
            ],
        )

    def _add(self, pipelines: dict[str, _Pipeline], record: RunRecord) -> None:
        run = record.run
        if run is None or is_gone(run, self.now_ns()):
            return
        name = run.start.pipeline
        if name not in pipelines and len(pipelines) >= _PIPELINES:
            name = OTHER_PIPELINES
        group = pipelines.setdefault(name, _Pipeline())
        phases = showing.phases_of(record)
        group.runs.append(part_of_run(run, showing.sums_of(record)))
        group.by_status[showing.status_of(run)] += 1
        group.partial_runs += phases.partial
        for phase in phases.entries:
            known = phase.phase in group.phases or len(group.phases) < _PHASES
            group.phases.setdefault(phase.phase if known else OTHER_PHASES, []).append(
                part_of_phase(run, phase)
            )


def runs_to_compare(wanted: InsightsWanted) -> tuple[str, str] | None:
    """The two runs of `view=compare`; None for the other view, which takes none.

    Raises Rejected with the name of the one that is missing or too much.
    """
    comparing = wanted.view == "compare"
    for name in ("a", "b"):
        if (getattr(wanted, name) is not None) != comparing:
            detail = "`view=compare`, and it alone, takes two run ids, `a` and `b`"
            raise Rejected("invalid_field", name, detail)
    for name in ("pipeline", "from_", "to", "by"):
        if getattr(wanted, name) is not None and comparing:
            detail = "`view=compare` takes `a` and `b` alone"
            raise Rejected("invalid_field", name.rstrip("_"), detail)
    return None if wanted.a is None or wanted.b is None else (wanted.a, wanted.b)


def _width_of(wanted: InsightsWanted, since: int, until: int) -> int | None:
    """Nanoseconds of an interval. Raises Rejected when there would be too many."""
    if wanted.by is None:
        return None
    width_ns = _WIDTHS[wanted.by]
    if (until - since) // width_ns >= _INTERVALS:
        detail = f"more than {_INTERVALS} intervals: give a later `from`, or ask for days"
        raise Rejected("invalid_field", "by", detail)
    return width_ns


def _pipeline_figures(
    name: str, group: _Pipeline, width_ns: int | None, *, of_phases: bool
) -> shapes.PipelineFigures:
    def times_of(parts: list[Part]) -> list[shapes.Interval] | None:
        return None if width_ns is None else intervals_of(parts, width_ns)

    return shapes.PipelineFigures(
        pipeline=name,
        by_status=dict(group.by_status),
        partial_runs=group.partial_runs,
        times=times_of(group.runs),
        phases=[
            shapes.PhaseFigures(
                phase=phase, times=times_of(parts) if of_phases else None, **figures_of(parts)
            )
            for phase, parts in group.phases.items()
        ],
        **figures_of(group.runs),
    )
