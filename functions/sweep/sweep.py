"""Mark the open runs that have been silent for longer than they may, and see to their summaries.

The mark comes last: a sweep that dies before it leaves a run that the next one finds as it was, and
asks and tells again. So a summary and an event may come twice, and never not at all. A run that
nobody could be told of gets a mark that says so, and is told by a later sweep.

A run that is stale already is looked into once an hour. It costs about 6,500 read units a month,
$0.0008, of which two thirds are for RUN with every sweep: one more unit an hour for each further
bucket.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.model import Run, Stale, Totals
from functions.core.ports import EventBus, OpenRuns, Place, RecountQueue
from functions.core.run_events import RunEvent, run_stale
from functions.core.staleness import deadline_ns
from functions.core.times import SECOND
from functions.core.turns import has_turn

type Spread = Callable[[Callable[[Run], Verdict], Iterable[Run]], Iterable[Verdict]]
"""How independent looks at runs are spread: `map` one after the other, an executor's at once."""

RUNS_AT_ONCE: Final = 100


@dataclass(slots=True)
class Swept:
    """What a sweep found and did. `finished`: it came to the end of the open runs."""

    open_runs: int = 0
    marked: int = 0
    taken_off: int = 0
    recount_requests: int = 0
    events_refused: int = 0
    finished: bool = False
    failed: list[tuple[RunRef | None, Unavailable]] = field(default_factory=list)
    """With the run that it is about, if it is about one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one look at a run found: the mark that it should have, or why there was no telling."""

    run: Run
    mark: Stale | None = None
    totals: Totals = field(default_factory=Totals)
    failure: Unavailable | None = None

    @property
    def to_be_marked(self) -> bool:
        return self.mark is not None and self.mark != self.run.stale

    @property
    def to_be_told(self) -> bool:
        return self.run.stale is None or self.run.stale.untold

    @property
    def to_be_recounted(self) -> bool:
        """Not again while TOTALS stand where they stood: that recount read all they count."""
        if self.mark is None:
            return False
        return self.run.stale is None or self.mark.counted > self.run.stale.counted


@dataclass(frozen=True, slots=True)
class Sweep:
    runs: OpenRuns
    recounts: RecountQueue
    bus: EventBus
    now_ns: Callable[[], int]
    every_s: int
    spread: Spread = map

    def __call__(self, late: Callable[[], bool], swept: Swept) -> None:
        """Look at every open run from where the last sweep stopped on, until it is `late`.

        A run that cannot be looked at, or settled, costs the others nothing, and is looked at again
        by the next sweep. Raises Unavailable when the runs themselves cannot be listed: `swept` has
        then what was done before.
        """
        noted = self.runs.load_place()
        place = noted if noted.began_at else noted._replace(began_at=self.now_ns())
        # Of a last tour that nobody noted, one sweep was enough.
        last_at = place.last_at or place.began_at - self.every_s * SECOND
        while place.shard < keys.OPEN_RUN_SHARDS:
            if late():
                self.runs.save_place(place)
                return
            refs, place = self.runs.page_of_open_runs(place, RUNS_AT_ONCE)
            if refs:
                self._settle(self._load(refs, swept), last_at, swept)
        ended = Place(last_at=noted.began_at)
        if noted != ended:
            self.runs.save_place(ended)
        swept.finished = True

    def _load(self, refs: Sequence[RunRef], swept: Swept) -> list[Run]:
        try:
            found = self.runs.load_runs(refs)
        except Unavailable as failure:
            swept.failed.append((None, failure))
            return []
        swept.failed += [(ref, run) for ref, run in found.items() if isinstance(run, Unavailable)]
        return [run for run in found.values() if isinstance(run, Run)]

    def _settle(self, runs: Sequence[Run], last_at: int, swept: Swept) -> None:
        now_s = self.now_ns() // SECOND
        is_open = [r for r in runs if not r.end and not r.deleted and r.expires_at > now_s]
        swept.open_runs += len(is_open)
        verdicts = list(self.spread(partial(self._look, last_at), is_open))
        swept.failed += [(v.run.ref, v.failure) for v in verdicts if v.failure]
        for verdict in verdicts:
            if verdict.failure is None and verdict.mark is None and verdict.run.stale:
                self._attempt(verdict, swept, self._take_off)
        asked = [v for v in verdicts if v.to_be_marked and self._attempt(v, swept, self._ask)]
        for verdict in self._tell(asked, swept):
            self._attempt(verdict, swept, self._mark)

    def _look(self, last_at: int, run: Run) -> Verdict:
        """Only a run that may be past its deadline is looked into any further than RUN; one that is
        stale already, only when it has its turn, or nobody was told of it. It was come by last
        after `last_at`, when the last tour began."""
        deadline = deadline_ns(run.start)
        now_ns = self.now_ns()
        if run.stale is None and run.start.order.at + deadline > now_ns:
            return Verdict(run)
        told = run.stale and not run.stale.untold and run.stale
        if told and not has_turn(now_ns - told.since, now_ns - last_at):
            return Verdict(run, told)
        try:
            since = self.runs.newest_event_at(run) + deadline
            if since > now_ns:
                return Verdict(run)
            totals = self.runs.read_totals(run).totals
        except Unavailable as failure:
            return Verdict(run, failure=failure)
        return Verdict(run, Stale(since, totals.agents_total), totals)

    def _ask(self, verdict: Verdict, swept: Swept) -> None:
        """Ask for the summary. No `agents_total`, which a partial one might cover, the first time:
        that asks for whatever is there, also where the stream lost something."""
        if not verdict.to_be_recounted or verdict.mark is None:
            return
        again = verdict.run.stale is not None
        counted = verdict.mark.counted if again else None
        self.recounts.request_recount(verdict.run.ref, counted)
        swept.recount_requests += 1

    def _tell(self, verdicts: Sequence[Verdict], swept: Swept) -> list[Verdict]:
        """Publish what is news; returns those to be marked, with a mark that says what was not
        taken. A run that has ended meanwhile is neither."""
        open_still = [
            verdict
            for verdict in verdicts
            if not verdict.to_be_told or self._is_open_still(verdict, swept)
        ]
        news: list[RunEvent] = [
            run_stale(verdict.run, verdict.mark.since, verdict.totals)
            for verdict in open_still
            if verdict.mark and verdict.to_be_told
        ]
        refused = {event.ref for event in self.bus.publish(news)}
        swept.events_refused += len(refused)
        return [
            replace(verdict, mark=replace(verdict.mark, untold=verdict.run.ref in refused))
            for verdict in open_still
            if verdict.mark
        ]

    def _is_open_still(self, verdict: Verdict, swept: Swept) -> bool:
        """As it is now: what was looked at may lag behind, and an event cannot be taken back."""
        try:
            run = self.runs.load_run(verdict.run.ref)
        except Unavailable as failure:
            swept.failed.append((verdict.run.ref, failure))
            return False
        return run is not None and not run.end and not run.deleted

    def _mark(self, verdict: Verdict, swept: Swept) -> None:
        if verdict.mark and self.runs.mark_stale(verdict.run, verdict.mark):
            swept.marked += verdict.run.stale is None

    def _take_off(self, verdict: Verdict, swept: Swept) -> None:
        swept.taken_off += self.runs.take_mark_off(verdict.run)

    def _attempt(
        self, verdict: Verdict, swept: Swept, act: Callable[[Verdict, Swept], None]
    ) -> bool:
        """Whether it went well: what one run meets must not cost the others of its page."""
        try:
            act(verdict, swept)
        except Unavailable as failure:
            swept.failed.append((verdict.run.ref, failure))
            return False
        return True
