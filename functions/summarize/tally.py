"""Count what the stream brings, exactly once, and see to it that an ended run gets its summary.

Exactly once stands on the watermark: a bucket's mark on TOTALS says how far its stream has been
counted, and the same write moves the mark and adds the sums. It needs the order of the stream per
partition key, which one batch at a time per shard keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from functions.core import caps
from functions.core.changes import Change, RunEnded, StepStored
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.model import LiveTotals, Run, StepRow, Totals
from functions.core.ports import EventBus, RecountQueue, TotalsStore
from functions.core.run_events import RunEndedEvent, run_ended
from functions.summarize.recount import Recount, Recounted

RECOUNT_HERE = 2_000
"""Steps up to which an ended run is recounted at once, in the invocation that saw it end."""
RECOUNT_HERE_PER_INVOCATION = 5_000


@dataclass(slots=True)
class Tallied:
    """What became of a batch; `failed` holds the first position of every run to be tried again."""

    recount_requests: int = 0
    recounted_steps: int = 0
    published: int = 0
    recounts: list[Recounted] = field(default_factory=list)
    counted: list[StepRow] = field(default_factory=list)
    failed: dict[int, Unavailable] = field(default_factory=dict)
    ended: list[tuple[int, RunEndedEvent]] = field(default_factory=list)
    """What is to be told, with the position of the record that says so."""


@dataclass(frozen=True, slots=True)
class Tally:
    totals: TotalsStore
    recounts: RecountQueue
    recount: Recount
    bus: EventBus

    def __call__(self, changes: Sequence[Change]) -> Tallied:
        """Apply the changes of one batch, run by run; a run that fails costs the others nothing."""
        by_run: dict[RunRef, list[Change]] = {}
        for change in changes:
            by_run.setdefault(change.ref, []).append(change)
        tallied = Tallied()
        for ref, of_run in by_run.items():
            try:
                self._count(ref, of_run, tallied)
            except Unavailable as failure:
                tallied.failed[of_run[0].position] = failure
        self._publish(tallied)
        return tallied

    def _count(self, ref: RunRef, changes: Sequence[Change], tallied: Tallied) -> None:
        run = self.totals.load_run(ref)
        if run is None or run.deleted:
            return
        steps = [change for change in changes if isinstance(change, StepStored)]
        live: LiveTotals | None = None
        for bucket in sorted({step.bucket for step in steps}):
            # By mark, which also makes a record that comes twice in one batch count once.
            of_bucket = {step.mark: step for step in steps if step.bucket == bucket}
            live = self._count_bucket(run, bucket, dict(sorted(of_bucket.items())), tallied)
        if len(steps) < len(changes):
            self._summarize(run, changes, tallied)
        elif live and live.ended:
            # Also when none of the steps was new: the invocation that counted them may have died
            # before it asked.
            self.recounts.request_recount(ref, live.totals.agents_total)
            tallied.recount_requests += 1

    def _count_bucket(
        self, run: Run, bucket: int, steps: dict[bytes, StepStored], tallied: Tallied
    ) -> LiveTotals:
        pending = steps
        added = False
        while pending and not added:
            marks = list(pending)
            sums = Totals.of([step.step for step in pending.values()])
            added, live = self.totals.add_to_totals(run, bucket, sums, marks[0], marks[-1])
            if not added:  # its mark is at our first or past it: fewer are left each time
                pending = _above(live.marks.get(bucket, b""), pending)
        tallied.counted += [step.step for step in pending.values()]
        # All of the batch, not only what was new to TOTALS: the preview has a mark of its own,
        # and an invocation may have died between the two writes.
        if not live.preview_full:
            self._extend_preview(run, bucket, steps)
        return live

    def _extend_preview(self, run: Run, bucket: int, steps: dict[bytes, StepStored]) -> None:
        pending = steps
        room = caps.PREVIEW_ENTRIES
        while pending and room > 0:
            marks = list(pending)
            shown = [step.step for step in pending.values()][:room]
            added, preview = self.totals.extend_preview(run, bucket, shown, marks[0], marks[-1])
            room = caps.PREVIEW_ENTRIES - preview.length
            if added:
                break
            pending = _above(preview.marks.get(bucket, b""), pending)
        if room <= 0:
            # A refused write is billed for the whole item: never try again.
            self.totals.mark_preview_full(run)

    def _summarize(self, run: Run, changes: Sequence[Change], tallied: Tallied) -> None:
        """The run ended: recount it here when it is small, else through the queue. Whoever did it
        tells that the run has ended, if that is news."""
        ends = [one.position for one in changes if isinstance(one, RunEnded) and one.new]
        total = self.totals.mark_ended(run).totals.agents_total
        budget = RECOUNT_HERE_PER_INVOCATION - tallied.recounted_steps
        if total <= min(RECOUNT_HERE, budget):
            recounted = self.recount(run.ref, None)
            if recounted:
                tallied.recounts.append(recounted)
                tallied.recounted_steps += recounted.steps
                if ends and recounted.run.end:
                    event = run_ended(recounted.run, recounted.summary.totals)
                    tallied.ended.append((ends[-1], event))
        else:
            self.recounts.request_recount(run.ref, None if ends else total, announce=bool(ends))
            tallied.recount_requests += 1

    def _publish(self, tallied: Tallied) -> None:
        """At the end, many at once. What is not taken is left to a recount, which a queue repeats:
        the counting of other runs must not wait for it. Ends behind a run that failed are told when
        their records come again, and not as often as that run fails."""
        again = min(tallied.failed, default=None)
        if again is not None:
            tallied.ended = [(at, event) for at, event in tallied.ended if at < again]
        refused = self.bus.publish([event for _, event in tallied.ended])
        tallied.published = len(tallied.ended) - len(refused)
        for position, event in tallied.ended:
            if event in refused:
                try:
                    self.recounts.request_recount(event.ref, None, announce=True)
                except Unavailable as failure:
                    tallied.failed[position] = failure
                else:
                    tallied.recount_requests += 1


def _above(mark: bytes, steps: dict[bytes, StepStored]) -> dict[bytes, StepStored]:
    return {position: step for position, step in steps.items() if position > mark}
