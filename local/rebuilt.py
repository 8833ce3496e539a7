"""Whether a stage has all that was sent to it of a run, and shows the run as its steps add up."""

from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from functions.core.keys import RunRef
from local.reconciling import Drift, Reconciled
from local.recounting import Recounting
from local.resending import Sent
from local.waiting import UnderWay

_MOST_DRIFTS_NAMED: Final = 3


class Wrong(Struct, frozen=True):
    """A run that has fewer steps than were sent of it, no end though one was sent, or sums that
    readers see and its steps do not add up to."""

    tenant_id: str
    run_id: str
    steps_sent: int
    steps_stored: int
    end_missing: bool
    drift: list[Drift]

    def __str__(self) -> str:
        said = [f"{drift}" for drift in self.drift[:_MOST_DRIFTS_NAMED]]
        if len(self.drift) > _MOST_DRIFTS_NAMED:
            said.append("…")
        if self.end_missing:
            said.insert(0, "its end is missing")
        if (missing := self.steps_sent - self.steps_stored) > 0:
            said.insert(0, f"{missing:,} of {self.steps_sent:,} steps are missing")
        return "; ".join(said) or "it is not there"


@dataclass(frozen=True, slots=True)
class Check:
    recounting: Recounting
    under_way: UnderWay

    def __call__(self, ref: RunRef, sent: Sent) -> Wrong | None:
        """What is wrong with the run, if it still is when no more is waited for.

        A recount is asked for where sums differ. Of a run that was deleted nothing is expected.
        """
        settled = self.recounting.settled(
            ref,
            self.recounting(ref),
            whole=lambda found: self._wrong(ref, sent, found) is None,
            late=lambda: self.under_way.over,
        )
        return self._wrong(ref, sent, settled)

    def _wrong(self, ref: RunRef, sent: Sent, found: Reconciled | None) -> Wrong | None:
        run = self.recounting.reader.load_run(ref)
        if run is not None and run.deleted:
            return None
        stored = found.calls if found else 0
        end_missing = sent.ended and (run is None or run.end is None)
        if found and found.shown_exactly and stored >= sent.steps and not end_missing:
            return None
        drift = [] if found is None or found.shown_exactly else found.drift
        return Wrong(*ref, sent.steps, stored, end_missing, drift)
