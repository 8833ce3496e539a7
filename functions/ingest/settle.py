"""What a message says of its run: when it began and ended, and that it goes on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from functions.core import caps, items
from functions.core.model import End, Order, Run, RunStatus, Stale, Start
from functions.core.ports import Recorded, RunStore
from functions.core.retention import DAY_S, times_of
from functions.core.staleness import deadline_ns
from runtally import wire
from runtally.wire import RunEnded, RunEvent, RunStarted


def start_in(lines: Sequence[tuple[RunEvent, bytes]]) -> Start:
    """The start that events tell of, each with its bytes as stored; without one, an implicit start
    at their earliest time."""
    starts = [
        Start(
            order=Order(event.at, wire.digest(text)),
            pipeline=caps.cut(event.pipeline, caps.NAME),
            session_id=None if event.session_id is None else caps.cut(event.session_id, caps.NAME),
            attributes=items.attributes_text(event.attributes, caps.RUN_ATTRIBUTES),
            stale_after_s=event.stale_after_s,
        )
        for event, text in lines
        if isinstance(event, RunStarted)
    ]
    if starts:
        return min(starts, key=lambda start: start.order)
    earliest = min(min(times_of(event).values()) for event, _ in lines)
    return Start(order=Order(earliest, ""), implicit=True)


@dataclass(frozen=True, slots=True)
class Settle:
    """RUN last, when all it speaks of is stored; a result before the end that it belongs to."""

    runs: RunStore
    now_ns: Callable[[], int]

    def __call__(
        self, known: Run, run: Run, start: Start, recorded: Sequence[Recorded[RunEvent]]
    ) -> None:
        """`known` is what stood there before the message, `run` the same with its new expiry."""
        ends = only(RunEnded, recorded)
        for end in ends:
            if end.event.result is not None or end.event.error is not None:
                self.runs.put_result(run, end)
        if known.start.yields_to(start):
            self.runs.replace_start(run, start)
            run = replace(run, start=start)
        first_end = min(map(_end_of, ends), key=lambda end: end.order, default=None)
        if first_end and (known.end is None or known.end.yields_to(first_end)):
            self.runs.end_run(run, first_end)
            return
        if known.stale:
            self._see_to_mark(run, known.stale, recorded)
        if run.expires_at - known.expires_at > DAY_S:
            self.runs.extend_retention(run)

    def _see_to_mark(self, run: Run, stale: Stale, recorded: Sequence[Recorded[RunEvent]]) -> None:
        """Not left to the sweep, whose next look may come after a retention that counts from the
        mark. A run that stays stale keeps its mark: that was told already."""
        newest = max(max(times_of(one.event).values()) for one in recorded)
        since = newest + deadline_ns(run.start)
        if since > self.now_ns():
            self.runs.resume(run, since)
        elif since > stale.since:
            self.runs.move_mark(run, since)


def _end_of(recorded: Recorded[RunEnded]) -> End:
    end = recorded.event
    return End(
        order=Order(end.at, recorded.digest),
        status=RunStatus(end.status),
        error=None if end.error is None else caps.cut(end.error, caps.ERROR),
    )


def only[E](kind: type[E], recorded: Iterable[Recorded[RunEvent]]) -> list[Recorded[E]]:
    """Those of one kind."""
    return [
        Recorded(one.event, one.digest, one.pointer, one.stored_at)
        for one in recorded
        if isinstance(one.event, kind)
    ]
