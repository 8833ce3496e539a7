"""The lake's function as the second reader of the stream, and an operator who has runs written
anew: now and then while all goes on, and in the end those of which something was given up."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from functions.adapters.s3_lake import S3LakeFiles
from functions.adapters.settings import LakeSettings
from functions.adapters.stream import run_of
from functions.core import keys
from functions.core.deletions import Deletion
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake_ports import LakeNote, LakeSource
from functions.core.model import Run, StepRow
from functions.lake import handler
from tests.memory_lake import KEPT_DAYS, MemoryLake, day_in, write_plain
from tests.memory_stage import NOW_NS, MemoryStage
from tests.simulation.deleting import QuietTime
from tests.simulation.quiet import Quiet
from tests.simulation.sources import Record, in_sandbox
from tests.simulation.tasks import Killed, Task, Tasks


class LakeWriter:
    """`given_up` are the runs of the batches that Lambda gave up."""

    def __init__(  # noqa: PLR0917 - as many as there are
        self,
        tasks: Tasks,
        draw: random.Random,
        coverage: Counter[str],
        stage: MemoryStage,
        clients: tuple[Any, Any],
        quiet_time: QuietTime,
        containers: int,
    ) -> None:
        self._tasks = tasks
        self._items = stage.dynamodb.items
        self._draw = draw
        self._coverage = coverage
        self._quiet_time = quiet_time
        self._claims: dict[Task, LakeNote] = {}
        self._containers = [self._container(*clients) for _ in range(containers)]
        self.given_up: set[RunRef] = set()

    def _container(self, dynamodb: Any, s3: Any) -> handler.LakeParts:
        parts = handler.lake_over(dynamodb, s3, LakeSettings("t", "l", KEPT_DAYS), lambda: NOW_NS)
        source = _Watched(
            parts.write.source, self._tasks, self._claims, self._coverage, self._dawdle
        )
        files = S3LakeFiles(s3, "l", write_plain)
        write = replace(parts.write, source=cast("LakeSource", source), files=files)
        return replace(parts, write=write, telemetry=Quiet())

    def batch(self, records: list[Record]) -> set[str]:
        """Some invocations find that it is late, before any run but the first."""
        parts = self._draw.choice(self._containers)
        answer = self._invoke(
            lambda: handler.process({"Records": records}, parts, lambda: self._draw.random() < 0.1)
        )
        return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}

    def give_up(self, records: list[Record]) -> None:
        """The letter names a place in the stream; whoever reads it looks there which runs."""
        self.given_up |= {run_of(record) for record in records}

    def ask_now_and_then(self, refs: list[RunRef], times: int) -> None:
        for _ in range(times):
            ref = self._draw.choice(refs)
            self.wait_for_summary([ref])
            try:
                self._ask(ref)
            except (Unavailable, Killed) as end:
                self._coverage[f"lake/asked for, {type(end).__name__}"] += 1

    def wait_for_summary(self, refs: Iterable[RunRef]) -> None:
        """Then there is something to write, and what still comes has to be written again. Nobody
        waits for ever."""
        awaited = [keys.item_of_run(ref, keys.SUMMARY) for ref in refs]
        for _ in range(self._draw.randint(0, 1_000)):
            if not self._items.keys().isdisjoint(awaited):
                break
            self._tasks.pause()
        for _ in range(self._draw.randint(0, 50)):
            self._tasks.pause()

    def ask_for(self, refs: Iterable[RunRef]) -> None:
        for ref in sorted(refs):
            self._ask(ref)

    def _ask(self, ref: RunRef) -> None:
        parts = self._draw.choice(self._containers)
        rows = self._invoke(lambda: handler.write_again(ref._asdict(), parts))["rows"]
        self._coverage[f"lake/asked for, {'written' if rows else 'nothing to write'}"] += 1

    def _dawdle(self) -> None:
        """Whoever is slow between reading and writing is overtaken."""
        if self._draw.random() < 0.3:
            for _ in range(self._draw.randint(0, 300)):
                self._tasks.pause()

    def _invoke(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            with self._quiet_time.writing():
                return in_sandbox(self._tasks, work)
        finally:
            self._claims.pop(self._tasks.current, None)


class _Watched:
    """What the lake reads of the table; tells in passing what its writers meet there."""

    def __init__(
        self,
        source: LakeSource,
        tasks: Tasks,
        claims: dict[Task, LakeNote],
        coverage: Counter[str],
        dawdle: Callable[[], None],
    ) -> None:
        self._source = source
        self._tasks = tasks
        self._claims = claims
        self._coverage = coverage
        self._dawdle = dawdle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def load_note(self, ref: RunRef) -> LakeNote:
        """After a claim, this is the look whether another one was made since."""
        note = self._source.load_note(ref)
        claimed = self._claims.pop(self._tasks.current, note)
        self._coverage["lake/overtaken"] += note.turn != claimed.turn
        return note

    def steps_of_run(self, run: Run) -> list[StepRow]:
        steps = list(self._source.steps_of_run(run))
        self._dawdle()
        return steps

    def put_note(self, ref: RunRef, before: LakeNote, after: LakeNote) -> bool:
        taken = self._source.put_note(ref, before, after)
        if taken:
            self._claims[self._tasks.current] = after
            self._coverage["lake/moved to another day"] += len(after.days) > len(before.days) > 0
            self._dawdle()
        else:
            self._coverage["lake/claim refused"] += 1
        return taken


# -- what must hold ------------------------------------------------------------------------------


def files_are_noted(stage: MemoryStage, refs: Iterable[RunRef], coverage: Counter[str]) -> None:
    """At every moment the note names each day under which there is anything of a run: deletion
    goes by it. What a lock holds behind a deletion, nobody needs to find any more."""
    lake = lake_of(stage)
    for ref in refs:
        shown = {day_in(key) for key in lake.files_of(ref)}
        there = shown if lake.s3.locked else {day_in(key) for key in lake.versions_of(ref)}
        noted = (stage.item(ref, keys.LAKE) or {}).get("days", [])
        assert there <= set(noted), f"lake: files under {there}, and the note says {noted}"
        coverage["lake/under two days for a moment"] += len(shown) > 1


def gone_from_lake(stage: MemoryStage, deletion: Deletion) -> None:
    """I13: no reader finds anything of a deleted run, and there is no version but what a lock
    holds, of which the receipt tells."""
    lake = lake_of(stage)
    assert not lake.files_of(deletion.ref), "I13: readers find it in the lake"
    held = lake.versions_of(deletion.ref)
    assert lake.s3.locked or not held, f"I13: versions are left: {held}"
    assert bool(held) == (deletion.locked_until is not None), "I13: what the receipt says of locks"


def lake_of(stage: MemoryStage) -> MemoryLake:
    assert stage.lake
    return stage.lake
