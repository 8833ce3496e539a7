"""Recount a run from its step items: the truth behind SUMMARY, whatever the stream did."""

from dataclasses import dataclass

from functions.core.keys import RunRef
from functions.core.model import Totals
from functions.core.phases import summarize_steps
from functions.core.ports import TotalsStore


@dataclass(frozen=True, slots=True)
class Recounted:
    """What a recount found: how many steps, and how far TOTALS, read just before, were off."""

    steps: int
    drift: int


@dataclass(frozen=True, slots=True)
class Recount:
    totals: TotalsStore

    def __call__(self, ref: RunRef, agents_total: int | None) -> Recounted | None:
        """Put the run's SUMMARY; None when there is nothing to do.

        The order is what makes it safe. The ended mark comes first, so that every step counted
        from here on asks for another recount; then `agents_total`; then the steps. A request is
        skipped only when a summary began to read after its step was counted: then it has it.
        """
        run = self.totals.load_run(ref)
        if run is None or run.deleted:
            return None
        if agents_total is not None:
            covered = self.totals.covered_total(run)
            if covered is not None and agents_total <= covered:
                return None
        live = self.totals.mark_ended(run) if run.end else self.totals.read_totals(run)
        # Buckets come one after the other; the fold wants the run's own order.
        steps = sorted(self.totals.steps_of_run(run), key=lambda step: step.step_id)
        summary = summarize_steps(steps, at_total=live.totals.agents_total)
        self.totals.put_summary(run, summary)
        return Recounted(len(steps), _drift(live.totals, summary.totals))


def _drift(live: Totals, counted: Totals) -> int:
    """Steps by which the totals are off; 1 when they count the same steps but sum otherwise."""
    return abs(live.agents_total - counted.agents_total) or int(live != counted)
