"""One run on the terminal: phases, the calls to look at first, what it said."""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from functions.api import shapes
from functions.api.pages import Page
from local import moments
from local.tables import counted, milliseconds, phases_table, plain_table, said, status

_SHOWN: Final = 5
_ERRORS_SHOWN: Final = 10
_RESULT_LINES: Final = 10
_LOG_LINES: Final = 10


class Largest:
    """The calls with the largest values of all that were added, in memory for just these."""

    def __init__(self, value_of: Callable[[shapes.Call], Decimal | float | None]) -> None:
        self._value_of = value_of
        self._heap: list[tuple[Decimal | float, int, shapes.Call]] = []
        self._added = 0

    def add(self, call: shapes.Call) -> None:
        """Calls without a value, or with one of 0, are none of the largest."""
        if not (value := self._value_of(call)):
            return
        self._added += 1
        entry = (value, -self._added, call)  # of equal ones the first, and never compare calls
        if len(self._heap) < _SHOWN:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def calls(self) -> list[shapes.Call]:
        """The largest first."""
        return [call for _, _, call in sorted(self._heap, key=lambda e: e[:2], reverse=True)]


class Highlights:
    """What to look at first of a run's calls, in one pass and in bounded memory."""

    def __init__(self, calls: Iterable[shapes.Call]) -> None:
        self.slowest = Largest(lambda call: call.duration_ms)
        self.dearest = Largest(lambda call: Decimal(call.cost_usd or 0))
        self.failed: deque[shapes.Call] = deque(maxlen=_ERRORS_SHOWN)
        self.failures = 0
        for call in calls:
            self.slowest.add(call)
            self.dearest.add(call)
            if call.status == "failed":
                self.failures += 1
                self.failed.append(call)


def show_run(out: Console, page: Page) -> None:
    """Print a run from the answer of ReadRun, whose calls are taken one by one."""
    head = page.head
    assert isinstance(head, shapes.RunHead)  # noqa: S101 - what ReadRun's page begins with
    highlights = Highlights(row.value for row in page.rows)  # type: ignore[misc]
    _show_head(out, head.run)
    if head.totals is not None and head.phases is not None:
        out.print(phases_table(head.run, head.totals, head.phases), "")
    for title, largest in (("Slowest", highlights.slowest), ("Dearest", highlights.dearest)):
        if calls := largest.calls():
            out.print(_calls_table(f"{title} calls", calls), "")
    if highlights.failures:
        out.print(_errors_table(highlights), "")
    if head.result is not None and head.result.result is not None:
        _show_result(out, head.result)
    if head.logs is not None and head.logs.entries:
        _show_logs(out, head.logs)


def _show_head(out: Console, run: shapes.Run) -> None:
    now_ns = time.time_ns()
    started = f"{moments.local_time(run.started_at)} ({moments.ago(run.started_at, now_ns)})"
    shown = {
        "run": said(run.run_id),
        "pipeline": said(run.pipeline),
        "status": status(run.status),
        "started": Text(started + (", its start has not arrived yet" * run.start_implicit)),
        "elapsed": Text(moments.elapsed(run.started_at, run.ended_at, now_ns)),
        "session": said(run.session_id),
        "attributes": said(bytes(run.attributes or b"").decode()),
        "error": said(run.error, "red"),
    }
    for name, value in shown.items():
        if value.plain:
            out.print(Text.assemble((f"{name:11}", "dim"), value), soft_wrap=True)
    out.print()


def _calls_table(title: str, calls: Iterable[shapes.Call]) -> Table:
    table = plain_table(title)
    for name in ("step id", "phase", "name"):
        table.add_column(name, overflow="fold")
    for name in ("ms", "cost $"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("status", no_wrap=True)
    for call in calls:
        table.add_row(
            said(call.step_id),
            said(call.phase),
            said(name_of(call)),
            milliseconds(call.duration_ms),
            call.cost_usd or "",
            status(call.status),
        )
    return table


def _errors_table(highlights: Highlights) -> Table:
    shown, failures = len(highlights.failed), highlights.failures
    which = f"newest {shown} of {failures:,}" if shown < failures else f"{failures:,}"
    table = plain_table(f"Failed calls: {which}")
    for name in ("step id", "phase", "name", "error"):
        table.add_column(name, overflow="fold")
    for call in reversed(highlights.failed):
        error = said(call.error, "red")
        table.add_row(said(call.step_id), said(call.phase), said(name_of(call)), error)
    return table


def _show_result(out: Console, result: shapes.Result) -> None:
    lines = (result.result or "").splitlines()
    cut = " (cut here; the API has it whole)" if result.result_truncated else ""
    said_of = f"[italic]Result[/], {counted(result.result_bytes, 'byte')}{cut}"
    out.print(said_of, highlight=False)
    _show_lines(out, lines[:_RESULT_LINES], len(lines) - _RESULT_LINES)


def _show_logs(out: Console, logs: shapes.Logs) -> None:
    lines = [line for entry in logs.entries for line in entry.lines]
    shown = lines[-_LOG_LINES:]
    earlier = " There are earlier ones." if logs.older or len(shown) < len(lines) else ""
    out.print(f"[italic]Last lines of log[/].{earlier}")
    _show_lines(out, shown)


def _show_lines(out: Console, lines: Iterable[str], hidden: int = 0) -> None:
    for line in lines:
        out.print(Text.assemble("  ", said(line)), soft_wrap=True)
    if hidden > 0:
        out.print(f"  … and {counted(hidden, 'more line')}", style="dim")
    out.print()


def name_of(call: shapes.Call) -> str:
    return call.name or call.agent or call.kind
