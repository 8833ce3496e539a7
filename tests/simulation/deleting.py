"""Somebody deletes a run in the middle of everything, and erase does its work among the others."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.settings import EraseSettings
from functions.adapters.sqs import SqsErasures
from functions.api.operations import Api
from functions.core import deletions, keys
from functions.core.deletions import Deletion
from functions.core.errors import NotFound, Unavailable
from functions.core.items import DELETED
from functions.core.keys import RunRef
from functions.erase import handler as erase_handler
from tests.memory_stage import ERASURES, NOW_NS, QUIET_S, MemoryStage
from tests.simulation.quiet import Quiet
from tests.simulation.sources import Message, Queue, Weather, in_sandbox
from tests.simulation.tasks import Killed, Tasks


class QuietTime:
    """The clock that erase goes by: it moves on as those end who write.

    Whatever was under way at one moment is over once it shows `QUIET_S` more: two steps are longer,
    one is not, and before each the invocations end that the last one saw.
    """

    def __init__(self) -> None:
        self._under_way: set[object] = set()
        self._awaited: set[object] = set()
        self._steps = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        invocation = object()
        self._under_way.add(invocation)
        try:
            yield
        finally:
            self._under_way.discard(invocation)

    def now_ns(self) -> int:
        if not self._awaited & self._under_way:
            self._awaited = set(self._under_way)
            self._steps += 1
        return NOW_NS + self._steps * QUIET_S * 6 * 10**8


class Deleter:
    """Deletes a run at some moment; `deleted` are those whose tombstone it put."""

    def __init__(  # noqa: PLR0917 - as many as there are
        self,
        tasks: Tasks,
        draw: random.Random,
        weather: Weather,
        stage: MemoryStage,
        clients: tuple[Any, Any, Any],
        api: Api,
        s3_of_lake: Any,
    ) -> None:
        self.quiet_time = QuietTime()
        self._tasks = tasks
        self._draw = draw
        self._weather = weather
        self._stage = stage
        self._api = api
        self._waits_for: set[RunRef] = set()
        self._shown_ns = NOW_NS
        settings = EraseSettings("t", "b", ERASURES, QUIET_S, "l" if stage.lake else "")
        parts = erase_handler.erase_over(
            *clients, settings, self.quiet_time.now_ns, s3_of_lake=s3_of_lake
        )
        at_once = erase_handler.at_once(parts, tasks.at_once)
        self._parts = replace(at_once, telemetry=Quiet())
        self.erasures = Queue("erase", tasks, weather, self._erase_batch, self._may_still_erase)

    @property
    def deleted(self) -> set[RunRef]:
        items = self._stage.dynamodb.items.items()
        return {
            keys.parse_run_partition(partition)[0]
            for (partition, sort), item in items
            if sort == keys.RUN and DELETED in item
        }

    def start(self, refs: list[RunRef]) -> None:
        for ref in refs:
            self._waits_for.add(ref)
            self._tasks.spawn(lambda ref=ref: self._delete(ref))  # type: ignore[misc]
        if refs:
            for _ in range(2):
                self._tasks.spawn(self.erasures.poll)

    def finish(self) -> None:
        """As the sweep does: what is not finished is asked for again."""
        for message in self.erasures.dead:
            self.erasures.waiting.append(Message(message.message_id, message.body))
        self.erasures.dead.clear()
        for ref in sorted(self.deleted):
            if self.receipt(ref).finished_at is not None:
                continue
            SqsErasures(self._stage.sqs, ERASURES).request_erasure(ref)  # type: ignore[arg-type]
        self._tasks.spawn(self.erasures.poll)
        self._tasks.run()

    def receipt(self, ref: RunRef) -> Deletion:
        table = DynamoDBTable(self._stage.dynamodb, "t")  # type: ignore[arg-type]
        deletion = DynamoDBTombstones(table).load_deletion(ref)
        assert deletion is not None
        return deletion

    def _delete(self, ref: RunRef) -> None:
        """A client that repeats what it got no answer to, or gives up; there may be no run yet."""
        try:
            for _ in range(self._draw.randint(0, 150)):
                self._tasks.pause()
            for _ in range(self._draw.choice((1, 3, 20))):
                try:
                    in_sandbox(self._tasks, lambda: self._answer(ref))
                except (Unavailable, NotFound, Killed) as answer:
                    self._weather.coverage[f"deletion/{type(answer).__name__}"] += 1
                    self._tasks.pause()
                else:
                    self._weather.coverage["deletion/accepted"] += 1
                    break
        finally:
            self._waits_for.discard(ref)
            self._tasks.changed()

    def _answer(self, ref: RunRef) -> dict[str, Any]:
        self._api.delete_run(ref)
        return {}

    def _erase_batch(self, records: list[dict[str, Any]]) -> set[str]:
        failed: set[str] = set()
        for record in records:  # one an invocation
            event = {"Records": [record]}
            late = self._draw.choice((True, False, False))
            try:
                answer = in_sandbox(
                    self._tasks,
                    lambda: erase_handler.process(event, self._parts, lambda: late),  # noqa: B023
                )
                failed |= {one["itemIdentifier"] for one in answer["batchItemFailures"]}
            except Killed:
                failed.add(record["messageId"])
            finally:
                self._take_erasures()
        return failed

    def _take_erasures(self) -> None:
        """Some before it is time: SQS's delay is nothing that anything may stand on."""
        due: list[str] = []
        waiting = self._stage.sqs.queues.get(ERASURES, [])
        clock = self._stage.sqs.clock
        now_ns = self.quiet_time.now_ns()
        clock.advance((now_ns - self._shown_ns) // 10**9)
        self._shown_ns = now_ns
        for sent in list(waiting):
            if sent.visible_at <= clock.now_ns() or self._draw.random() < 0.02:
                waiting.remove(sent)
                due.append(sent.body)
        for body in due:
            self.erasures.send(body)

    def _may_still_erase(self) -> bool:
        self._take_erasures()
        left = self._stage.sqs.queues.get(ERASURES)
        return bool(self._waits_for or self.erasures.waiting or left)


def gone_for_good(stage: MemoryStage, deletion: Deletion) -> None:
    """I13: of a deleted run nothing is left but its tombstone, in no version; and its receipt says
    that it is finished, and counts nothing that was not erased."""
    ref = deletion.ref
    found = {item[keys.SORT]: item for item in stage.items_of(ref)}
    tombstone = found.pop(keys.RUN)
    assert not found, f"I13: items are left: {sorted(found)}"
    allowed = {keys.PARTITION, keys.SORT, "v", "buckets", DELETED, keys.EXPIRES, deletions.RECEIPT}
    assert set(tombstone) == allowed, f"I13: the tombstone says {set(tombstone) - allowed}"
    below = (keys.objects_of_run(ref), keys.inbox_prefix(ref))
    left = [key for key in {*stage.s3.objects, *stage.s3.older} if key.startswith(below)]
    assert not left, f"I13: objects are left: {left}"
    assert deletion.finished_at is not None, "I13: not finished"
    partitions = {keys.run_partition(ref, bucket) for bucket in range(deletion.buckets)}
    removed = [
        record
        for record in stage.dynamodb.stream
        if record["eventName"] == "REMOVE" and record["dynamodb"]["Keys"]["PK"]["S"] in partitions
    ]
    assert deletion.items <= len(removed), "I13: more counted than erased"
