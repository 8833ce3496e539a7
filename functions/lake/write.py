"""Write an ended run to the lake, as it is now, however many try at the same time.

What is written last must have been read last, and S3 cannot tell. So each writer claims a turn on
the run's note between reading and writing, and looks afterwards whether somebody claimed one since:
then what it wrote may be the older, and it reads and writes again. Whoever writes last has the last
turn, and has read after every claim before its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from functions.core import lake
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake import Incomplete, Rows
from functions.core.lake_ports import LakeFiles, LakeNote, LakeSource, noted_until

_TRIES: Final = 5
"""Each of which fails only when somebody else got ahead."""


@dataclass(frozen=True, slots=True)
class Written:
    rows: int


@dataclass(frozen=True, slots=True)
class WriteRun:
    """`retention_days` is how long the bucket keeps a file from when it is written."""

    source: LakeSource
    files: LakeFiles
    now_ns: Callable[[], int]
    retention_days: int

    def __call__(self, ref: RunRef) -> Written | None:
        """Replace the run's files; None for a run that has no summary (yet), is gone or deleted,
        and for one of which calls have expired, or did not come back: the lake keeps it whole.

        A killed call is mended by the next: the note names every day before there is a file under
        it, and each call hides what lies under other days than the run's. Raises Unavailable.
        """
        for _ in range(_TRIES):
            note = self.source.load_note(ref)
            run = self.source.load_run(ref)
            if run is None or run.deleted or run.end is None:
                return None
            summarized = self.source.summarized_calls(run)
            if summarized is None:
                return None
            steps = sorted(self.source.steps_of_run(run), key=lambda step: step.step_id)
            day = lake.day_of(run)
            until = noted_until(self.now_ns(), self.retention_days)
            claimed = note.claimed(day, until, len(steps))
            calls = self.source.calls_of_run(run)
            try:
                rows = lake.rows_of_run(run, steps, calls, at_least=max(summarized, note.calls))
                if not self.source.put_note(ref, note, claimed):
                    continue
                count = self._put(ref, rows, claimed, day)
            except Incomplete:
                return None
            if self.source.load_note(ref).turn == claimed.turn:
                return Written(count)
        raise Unavailable(f"others write {ref.run_id} to the lake all the time")

    def _put(self, ref: RunRef, rows: Sequence[Rows], note: LakeNote, day: str) -> int:
        """The table of calls first: where one of them is gone, nothing is put. That of runs last:
        who finds the run there finds all of it, and once."""
        *before, last = rows
        count = sum(self.files.put_rows(ref, table, day, of_table) for table, of_table in before)
        for other in note.days:
            if other != day:
                self.files.hide(ref, other)
        return count + self.files.put_rows(ref, last[0], day, last[1])
