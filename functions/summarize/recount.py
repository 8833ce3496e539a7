"""Recount a run from its step items: the truth behind SUMMARY, whatever the stream did."""

from dataclasses import dataclass

from functions.core.keys import RunRef
from functions.core.model import Run, Summary, Totals
from functions.core.phases import summarize_steps
from functions.core.ports import TotalsStore


@dataclass(frozen=True, slots=True)
class Recounted:
    """What a recount found: how many steps, and how far TOTALS, read just before, were off.

    `overcounted`: they held what no step item says. `stands`: the summary replaced the one before.
    `newest_ns` is when the newest step ended, by its sender's clock; `stored_ns`, when the last one
    was stored.
    """

    steps: int
    drift: int
    run: Run
    summary: Summary
    stands: bool
    overcounted: bool
    newest_ns: int
    stored_ns: int
    named_phases: frozenset[str]


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
        stands = self.totals.put_summary(run, summary)
        drift = _drift(live.totals, summary.totals)
        return Recounted(
            steps=len(steps),
            drift=drift,
            run=run,
            summary=summary,
            stands=stands,
            overcounted=drift > 0 and live.totals.agents_total >= len(steps),
            newest_ns=max((step.ended_at for step in steps), default=0),
            stored_ns=max((step.stored_at for step in steps), default=0),
            named_phases=frozenset(step.phase for step in steps if step.phase),
        )


def _drift(live: Totals, counted: Totals) -> int:
    """Steps by which the totals are off; 1 when they count the same steps but sum otherwise."""
    return abs(live.agents_total - counted.agents_total) or int(live != counted)
