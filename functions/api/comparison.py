"""How two runs differ, phase by phase."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from functions.api import shapes, showing
from functions.api.figures import Part, part_of_phase, part_of_run
from functions.api.runs import live_run
from functions.core.api_ports import RunReader, RunRecord
from functions.core.keys import RunRef
from functions.core.model import Run


@dataclass(frozen=True, slots=True)
class CompareRuns:
    reader: RunReader
    now_ns: Callable[[], int]

    def __call__(self, tenant_id: str, a: str, b: str) -> shapes.Comparison:
        """Two runs of a tenant, phase by phase. Raises NotFound."""
        (run_a, one), (run_b, other) = (self._load(RunRef(tenant_id, i)) for i in (a, b))
        first = {phase.phase: phase for phase in showing.phases_of(one).entries}
        second = {phase.phase: phase for phase in showing.phases_of(other).entries}
        return shapes.Comparison(
            a=_compared(run_a, one),
            b=_compared(run_b, other),
            change=_change(
                part_of_run(run_a, showing.sums_of(one)), part_of_run(run_b, showing.sums_of(other))
            ),
            phases=[
                shapes.ComparedPhase(
                    phase=name,
                    a=first.get(name),
                    b=second.get(name),
                    change=_change(
                        part_of_phase(run_a, first[name]), part_of_phase(run_b, second[name])
                    )
                    if name in first and name in second
                    else None,
                )
                for name in {**first, **second}
            ],
        )

    def _load(self, ref: RunRef) -> tuple[Run, RunRecord]:
        record = self.reader.record_of(ref)
        return live_run(record.run, self.now_ns()), record


def _compared(run: Run, record: RunRecord) -> shapes.ComparedRun:
    return shapes.ComparedRun(
        shapes.Run(**showing.run_fields(run)),
        showing.sums_of(record),
        showing.phases_of(record).partial,
    )


def _change(a: Part, b: Part) -> shapes.Change:
    known = a.cost_unknown < a.calls and b.cost_unknown < b.calls
    return shapes.Change(
        calls=_per_cent(a.calls, b.calls),
        failed=_per_cent(a.failed, b.failed),
        cost_usd=_per_cent(a.cost, b.cost) if known else None,
        input_tokens=_per_cent(a.input_tokens, b.input_tokens),
        output_tokens=_per_cent(a.output_tokens, b.output_tokens),
        p50_ms=_per_cent(a.p50_ms, b.p50_ms),
        p95_ms=_per_cent(a.p95_ms, b.p95_ms),
    )


def _per_cent(a: float | Decimal | None, b: float | Decimal | None) -> float | None:
    """Rounded to a hundredth; exact before that, so that equal costs are never a change."""
    if a is None or b is None or not a:
        return None
    return float(round((Fraction(b) - Fraction(a)) / Fraction(a) * 100, 2))
