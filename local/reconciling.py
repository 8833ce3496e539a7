"""Whether what a stage shows of a run is what its step items add up to, to the last digit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from msgspec import Struct

from functions.api import showing
from functions.core import items
from functions.core.api_ports import RunReader, RunRecord
from functions.core.keys import RunRef
from functions.core.model import Run, Summary, Totals
from functions.core.phases import summarize_steps

LOOKS: Final = 3
"""How often a difference must be seen before it is one: counting follows storing by a second."""


class Drift(Struct, frozen=True):
    """A field that does not say what the step items add up to; money is a string."""

    item: str
    field: str
    stands: str | int | None
    counted: str | int

    def __str__(self) -> str:
        stands = "missing" if self.stands is None else self.stands
        return f"{self.item}.{self.field}  {stands}, counted {self.counted}"


class Reconciled(Struct, frozen=True):
    """One run: how many step items it has, and where its sums differ from them.

    `shown_exactly`: what readers see is exact. They go by the summary once it covers as many calls
    as the totals, which may then lag without harm; nothing but the stream ever adds to them.
    """

    run_id: str
    calls: int
    drift: list[Drift]
    shown_exactly: bool
    recount_requested: bool = False


@dataclass(frozen=True, slots=True)
class Reconcile:
    """`wait` is called between two looks at a run."""

    reader: RunReader
    wait: Callable[[], object]

    def __call__(self, ref: RunRef) -> Reconciled | None:
        """None for a run that is not there (any more)."""
        for look in range(LOOKS):
            if look:
                self.wait()
            if (found := self._look(ref)) is None or not found.drift:
                break
        return found

    def _look(self, ref: RunRef) -> Reconciled | None:
        """Sums only grow, so that exact ones, read before and after the steps, enclose the count;
        while nothing is recorded, before and after are the same."""
        before = self.reader.record_of(ref)
        if before.run is None or before.run.deleted:
            return None
        counted = self._count(before.run, before.totals.agents_total)
        after = self.reader.record_of(ref)
        drift = list(_beside("TOTALS", before.totals, counted.totals, after.totals))
        if before.run.end is not None:
            drift += _drift_of_summary(before, counted, after)
        shown = showing.sums_of(after)
        return Reconciled(
            run_id=ref.run_id,
            calls=counted.totals.agents_total,
            drift=drift,
            shown_exactly=all(
                shown.source == "summary" and found.item == "TOTALS" for found in drift
            ),
        )

    def _count(self, run: Run, at_total: int) -> Summary:
        # In step order already, over all buckets, which is what the fold wants.
        rows = [items.step_row(item) for item in self.reader.calls_of_run(run, "")]
        return summarize_steps(rows, at_total)


def _drift_of_summary(before: RunRecord, counted: Summary, after: RunRecord) -> Iterator[Drift]:
    if after.summary is None:
        yield Drift("SUMMARY", "agents_total", None, counted.totals.agents_total)
        return
    first = Totals() if before.summary is None else before.summary.totals
    sums = list(_beside("SUMMARY", first, counted.totals, after.summary.totals))
    yield from sums
    same = after.summary.totals == counted.totals and after.summary.fold_version == (
        counted.fold_version
    )
    if not sums and same and after.summary.phases != counted.phases:
        yield Drift("SUMMARY", "phases_summary", len(after.summary.phases), len(counted.phases))


def _beside(item: str, before: Totals, counted: Totals, after: Totals) -> Iterator[Drift]:
    """The fields that are more before the count than counted, or less after it."""
    first, last = before.as_attributes(), after.as_attributes()
    for name, value in counted.as_attributes().items():
        if not first[name] <= value <= last[name]:
            stands = first[name] if first[name] > value else last[name]
            yield Drift(item, name, _plain(stands), _plain(value))


def _plain(value: int | Decimal) -> str | int:
    return showing.money(value) if isinstance(value, Decimal) else value
