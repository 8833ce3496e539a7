"""Write an ended run to the lake, as it is now, however many try at the same time.

What is written last must have been read last, and S3 cannot tell. So each writer claims a turn on
the run's note between reading and writing, and looks afterwards whether somebody claimed one since:
then what it wrote may be the older, and it reads and writes again. Whoever writes last has the last
turn, and has read after every claim before its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from functions.core import lake
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake_ports import LakeFiles, LakeNote, LakeSource
from functions.core.model import Run, StepRow

_TRIES: Final = 5
"""Each of which fails only when somebody else got ahead."""


@dataclass(frozen=True, slots=True)
class Written:
    rows: int
    day: str


@dataclass(frozen=True, slots=True)
class WriteRun:
    source: LakeSource
    files: LakeFiles

    def __call__(self, ref: RunRef) -> Written | None:
        """Replace the run's files; None for a run that is open, gone or deleted, and for one of
        which calls have expired: the lake keeps it whole.

        A killed call is mended by the next: the note names every day before there is a file under
        it, and each call hides what lies under other days than the run's. Raises Unavailable.
        """
        for _ in range(_TRIES):
            note = self.source.load_note(ref)
            run = self.source.load_run(ref)
            if run is None or run.deleted or run.end is None:
                return None
            known = self.source.summarized_calls(run)
            steps = sorted(self.source.steps_of_run(run), key=lambda step: step.step_id)
            if len(steps) < known:
                return None
            day = lake.day_of(run)
            claimed = note.claimed(day)
            if not self.source.put_note(run, note, claimed):
                continue
            rows = self._put(run, steps, claimed, day)
            if self.source.load_note(ref).turn == claimed.turn:
                return Written(rows, day)
        raise Unavailable(f"others write {ref.run_id} to the lake all the time")

    def _put(self, run: Run, steps: Sequence[StepRow], note: LakeNote, day: str) -> int:
        calls = self.source.calls_of_run(run)
        rows = sum(
            self.files.put_rows(run.ref, table, day, of_table)
            for table, of_table in lake.rows_of_run(run, steps, calls)
        )
        for other in note.days:
            if other != day:
                self.files.hide(run.ref, other)
        return rows
