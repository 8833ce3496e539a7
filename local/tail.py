"""The command `runtally tail`: a run's calls and log lines as they are stored."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated, Final, cast

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from functions.api import shapes, showing
from functions.core import times
from functions.core.model import Run
from local import moments
from local.connect import Connect, connect
from local.progress import console
from local.reading import Reading, TenantOptions, write_json
from local.show import name_of
from local.tables import cost_in_words, counted, milliseconds, said, status
from local.waiting import Sleep

_HERE = TenantOptions()
_WINDOW_NS: Final = 120 * times.SECOND


def tail(
    run: str,
    /,
    *,
    interval: Annotated[timedelta, Parameter(show_default=lambda _: "1s")] = timedelta(seconds=1),
    sleep: Sleep = time.sleep,
    at: TenantOptions = _HERE,
    connect: Connect = connect,
) -> int:
    """Print a run's calls and log lines, those so far and then each as it is stored.

    Ends when the run has ended and its summary covers all of them, or with Ctrl-C. With `--json`,
    one object a line, as the API shows a call or a log entry.

    Parameters
    ----------
    run
        The run's id, as `runtally runs` lists it.
    interval
        How often to look: 0.5s, 1s, 1m.
    """
    with at.reading(connect) as reading:
        follower = Follower(reading, run)
        try:
            follow(follower, as_json=at.as_json, wait=lambda: sleep(interval.total_seconds()))
        except KeyboardInterrupt:
            console.print(_totals_of(follower.head))
    return 0


class Follower:
    """Each call and log entry of a run exactly once, whatever the order in which they arrive.

    Ids sort by the time at which a call began, not by arrival, so that a new one may lie below the
    last one seen. Every look therefore reads again from two minutes below the highest id, and
    passes over the ids that it knows. What arrives later than that shows in the totals: when they
    count more calls than were seen, the whole run is read.
    """

    def __init__(self, reading: Reading, run_id: str) -> None:
        self._reading = reading
        self._run_id = run_id
        self._seen: set[str] = set()
        self._seen_logs: set[str] = set()
        self.head = self._read_head()
        # Neither its ref nor its buckets ever change.
        self._run = cast("Run", reading.reader.record_of(reading.ref(run_id)).run)

    def look(self) -> Iterator[shapes.Call | shapes.LogEntry]:
        """What is new, in step order; `head` is then the run as it was just before."""
        # The head first: what its totals count is in the table, so that a later read finds it.
        self.head = self._read_head()
        assert self.head.logs is not None  # noqa: S101 - of a head without a cursor
        for entry in self.head.logs.entries:
            if entry.log_id not in self._seen_logs:
                self._seen_logs.add(entry.log_id)
                yield entry
        highest = int(max(self._seen, default="0")[:19])
        yield from self._new_calls(f"{max(0, highest - _WINDOW_NS):019d}")
        if len(self._seen) < self._counted:
            yield from self._new_calls("")

    @property
    def done(self) -> bool:
        """Whether the run has ended, and its summary covers all that was seen and counted."""
        totals = self.head.totals
        return (
            self.head.run.status != "running"
            and totals is not None
            and totals.source == "summary"
            and totals.agents_total == len(self._seen)
        )

    @property
    def _counted(self) -> int:
        return 0 if self.head.totals is None else self.head.totals.agents_total

    def _read_head(self) -> shapes.RunHead:
        head = self._reading.ask("readRun", run_id=self._run_id).head
        return cast("shapes.RunHead", head)

    def _new_calls(self, after: str) -> Iterator[shapes.Call]:
        for item in self._reading.reader.calls_of_run(self._run, after):
            call = showing.call(item)
            if call.step_id not in self._seen:
                self._seen.add(call.step_id)
                yield call


def follow(follower: Follower, *, as_json: bool, wait: Callable[[], object]) -> None:
    """Print what is new until the run is done, with `wait` between two looks."""
    out = Console()
    while True:
        for new in follower.look():
            if as_json:
                write_json(new)
            else:
                out.print(_line_of(new), soft_wrap=True)
        if follower.done:
            break
        with console.status(_totals_of(follower.head)):
            wait()
    console.print(_totals_of(follower.head))


def _line_of(new: shapes.Call | shapes.LogEntry) -> Text:
    """One line a call; of log, its own lines."""
    if isinstance(new, shapes.LogEntry):
        at = (f"{_clock(new.at)}  ", "dim")
        lines = [Text.assemble(at, said(line, "italic")) for line in new.lines]
        return Text("\n").join(lines)
    parts = (said(new.phase), said(new.kind, "dim"), said(name_of(new)))
    cost = f"${new.cost_usd}" if new.cost_usd else ""
    ends = (f"{milliseconds(new.duration_ms)} ms", cost, status(new.status), said(new.error, "red"))
    filled = [part for part in (*parts, *ends) if len(part)]
    return Text.assemble(
        (f"{_clock(new.started_at)}  ", "dim"), Text("  ").join(map(_text, filled))
    )


def _text(part: str | Text) -> Text:
    return part if isinstance(part, Text) else Text(part)


def _clock(at: str) -> str:
    return moments.local_time(at)[11:]


def _totals_of(head: shapes.RunHead) -> Text:
    if head.totals is None:
        return status(head.run.status)
    totals = head.totals
    counts = f": {counted(totals.agents_total, 'call')}, {totals.failed_total:,} failed; "
    return Text.assemble(status(head.run.status), counts, cost_in_words(totals))
