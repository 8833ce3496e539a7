"""A stage under one schedule: the real functions over fakes of AWS, with everything that can
happen between them."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any
from unittest import mock

from functions.adapters.settings import (
    ApiSettings,
    IngestSettings,
    RecountSettings,
    SummarizeSettings,
    SweepSettings,
)
from functions.adapters.sqs import SqsRecountQueue
from functions.api.handler import api_over
from functions.core import caps, keys
from functions.core.errors import Unavailable
from functions.core.turns import TURN_NS
from functions.ingest import handler as ingest_handler
from functions.summarize import handler as summarize_handler
from functions.summarize import recount_handler, tally
from functions.sweep import handler as sweep_handler
from tests.memory_lake import passes_filter as passes_filter_of_lake
from tests.memory_stage import (
    DEAD_LETTERS,
    ERASURES,
    EVENTS,
    NOW_NS,
    RECOUNTS,
    MemoryStage,
    passes_filter,
)
from tests.simulation.deleting import Deleter
from tests.simulation.faults import Faults, Network
from tests.simulation.lake_writing import LakeWriter
from tests.simulation.quiet import Quiet
from tests.simulation.readers import Reader
from tests.simulation.redriving import Redriver, partly_refused
from tests.simulation.scenario import Sent
from tests.simulation.sources import (
    Message,
    Queue,
    Record,
    Stream,
    Weather,
    by_item,
    by_partition,
    in_sandbox,
    shards,
)
from tests.simulation.tasks import Killed, Sandbox, Tasks

_FIVE_MINUTES_NS = 300 * 10**9
SWEPT_AFTER_S = 600
"""When the last sweep comes: later than an hour, the deadline, after the last event."""
LAKES = 0.15
"""The share of schedules in a stage with a lake."""
LOCKED_UNTIL = datetime(2999, 1, 1, tzinfo=UTC)
_POISON_BODIES = ("{", "null", '{"v":1}', '{"v":2,"tenant_id":"acme","events":[]}')


@dataclass(frozen=True)
class Plan:
    """How a schedule goes: all of it follows from its seed."""

    seed: int
    fault_rate: float
    faults: int
    badness: float
    ingest_at_once: int
    containers: int
    splits: int
    poison_messages: int
    poison_records: int
    page_bytes: int
    rebuild: bool
    poison_ends: bool
    reads: int
    preview_entries: int
    recount_here: int
    sweeps: int
    only: frozenset[int] | None = None
    redrives: int = 0
    deletes: int = 0
    lake: bool = False
    lake_lanes: int = 1
    lake_asks: int = 0
    lake_page: int = 1_000
    lake_locks: bool = False
    lake_late: int = 0
    """How many messages come once there is something in the lake."""
    lake_faults: bool = False
    """Whether all faults are met by what the lake's function asks for, and in the lake's bucket."""

    @classmethod
    def of(
        cls,
        seed: int,
        only: frozenset[int] | None = None,
        focus: Mapping[str, Any] = MappingProxyType({}),
    ) -> "Plan":
        """`focus` fixes some of it, for what would seldom come about."""
        rng = random.Random(seed)  # noqa: S311 - reproducible is the point
        plan = cls(
            seed=seed,
            fault_rate=rng.choice((0.0, 0.01, 0.03, 0.1)),
            faults=rng.choice((0, 1, 3, 12)),
            badness=rng.choice((0.0, 0.1, 0.3)),
            ingest_at_once=rng.choice((1, 2, 3)),
            containers=rng.choice((1, 2)),
            splits=rng.choice((0, 0, 1, 2)),
            poison_messages=rng.choice((0, 0, 1)),
            poison_records=rng.choice((0, 0, 1, 2)),
            page_bytes=rng.choice((1, 400, 10**6)),
            rebuild=rng.random() < 0.25,
            poison_ends=rng.random() < 0.3,
            reads=rng.choice((0, 0, 1, 2)),
            preview_entries=rng.choice((100, 100, 2, 3)),
            recount_here=rng.choice((2_000, 2_000, 2, 0)),
            sweeps=rng.choice((0, 1, 2)),
            only=only,
            redrives=rng.choice((0, 0, 1, 3)),
            deletes=rng.choice((0, 0, 1, 2)),
            lake=rng.random() < LAKES,
            lake_lanes=rng.choice((1, 2, 4)),
            lake_asks=rng.choice((0, 0, 1, 3)),
            lake_page=rng.choice((1, 2, 1_000)),
            lake_locks=rng.random() < 0.3,
            lake_late=rng.choice((0, 0, 1, 3)),
            lake_faults=rng.random() < 0.5,
        )
        plan = replace(plan, **focus)
        return plan if plan.lake else replace(plan, lake_late=0)


class World:
    """`run` plays the schedule to rest, and `repair` does then what an operator does.

    A batch that was given up becomes a recount by itself; only records that are gone from the
    stream need somebody who asks for one.
    """

    def __init__(self, plan: Plan, sent: list[Sent], coverage: Counter[str]) -> None:
        self.plan = plan
        self.sent = sent
        self.coverage = coverage
        self.stage = MemoryStage(page_bytes=plan.page_bytes, lake=plan.lake)
        self._rng = random.Random(plan.seed + 1)  # noqa: S311
        self.tasks = Tasks(random.Random(plan.seed + 2))  # noqa: S311
        draw = random.Random(plan.seed + 3)  # noqa: S311
        self.faults = Faults(draw, plan.fault_rate, plan.faults, plan.only)
        self.network = Network(self.tasks, self.faults, coverage)
        self.weather = Weather(random.Random(plan.seed + 4), plan.badness, coverage)  # noqa: S311
        client = partial(self.network.client, spared=plan.lake and plan.lake_faults)
        self._dynamodb = client("dynamodb", self.stage.dynamodb)
        self._s3 = client("s3", self.stage.s3)
        self._failed_batches = client("s3", self.stage.failed_batches)
        self._sqs = client("sqs", self.stage.sqs)
        self._events = client("events", self.stage.events)
        self._unsent: list[str] = []
        self._wire_functions()
        self._wire_sources()
        api = api_over(
            self._dynamodb,
            self._s3,
            self._sqs,
            ApiSettings("t", "b", EVENTS, 365, {}, ERASURES),
            lambda: NOW_NS,
        )
        reads = random.Random(plan.seed + 6)  # noqa: S311
        self.reader = Reader(api, self.tasks, reads, coverage, plan.reads)
        s3_of_lake = self.network.client("s3", self.stage.lake.s3) if self.stage.lake else None
        self.deleter = Deleter(
            self.tasks,
            random.Random(plan.seed + 9),  # noqa: S311
            self.weather,
            self.stage,
            (self._dynamodb, self._s3, self._sqs),
            api,
            s3_of_lake,
        )
        self._wire_lake(s3_of_lake)

    def _wire_functions(self) -> None:
        """Containers are reused from one invocation to the next; each has a clock of its own."""
        self._ingests = [
            replace(
                ingest_handler.at_once(
                    ingest_handler.ingest_over(
                        self._dynamodb,
                        self._s3,
                        self._sqs,
                        IngestSettings("t", "b", DEAD_LETTERS, 365, ERASURES),
                        self._clock(),
                    ),
                    steps=self.tasks.at_once,
                    messages=self.tasks.at_once,
                ),
                telemetry=Quiet(),
            )
            for _ in range(self.plan.containers)
        ]
        summarize = summarize_handler.summarize_over(
            self._dynamodb, self._sqs, lambda: self._events, SummarizeSettings("t", RECOUNTS)
        )
        self.summarize_quiet = Quiet()
        self._summarize = replace(summarize, telemetry=self.summarize_quiet)
        recount = recount_handler.recount_over(
            self._dynamodb,
            self._failed_batches,
            lambda: self._events,
            RecountSettings("t", "f"),
        )
        self._recount = replace(recount, telemetry=Quiet())
        self._sweep_draw = random.Random(self.plan.seed + 8)  # noqa: S311
        self._sweep_clock_s = 0
        sweep = sweep_handler.sweep_over(
            self._dynamodb,
            self._sqs,
            lambda: self._events,
            SweepSettings("t", RECOUNTS, ERASURES, 365, TURN_NS // 10**9),  # a turn each time
            lambda: NOW_NS + self._sweep_clock_s * 10**9,
        )
        at_once = replace(sweep.sweep, spread=self.tasks.at_once)
        self._sweep = replace(sweep, sweep=at_once, telemetry=Quiet())

    def _wire_sources(self) -> None:
        self.events = Queue(
            "ingest",
            self.tasks,
            self.weather,
            self._ingest_batch,
            lambda: bool(self._unsent or self._redriver.active),
        )
        self.recounts = Queue(
            "recount", self.tasks, self.weather, self._recount_batch, self._may_still_count
        )
        self.stream = Stream(
            "summarize",
            self.tasks,
            self.weather,
            self._summarize_batch,
            self.stage.dynamodb.stream,
            self._passes,
            self._may_still_store,
            self._keep_failed_batch,
            splits=self.plan.splits,
            poison=self.plan.poison_records,
            poison_ends=self.plan.poison_ends,
        )
        self._redriver = Redriver(
            self.tasks,
            random.Random(self.plan.seed + 7),  # noqa: S311
            self.coverage,
            self.stage.sqs,
            self._sqs,
            {"events": self.events, "recounts": self.recounts},
            self.plan.redrives,
            self._others_go_on,
        )

    def _wire_lake(self, s3: Any) -> None:
        """A second reader of the stream, with a place of its own in it; it rests without a lake."""
        plan = self.plan
        self._lake = LakeWriter(
            self.tasks,
            random.Random(plan.seed + 11),  # noqa: S311
            self.coverage,
            self.stage,
            (self.network.client("dynamodb", self.stage.dynamodb), s3),
            self.deleter.quiet_time,
            plan.containers,
        )
        self.stream_of_lake = Stream(
            "lake",
            self.tasks,
            self.weather,
            self._lake.batch,
            self.stage.dynamodb.stream,
            self._passes_to_lake,
            lambda: self.tasks.go_on_without(self.stream_of_lake.readers),
            self._lake.give_up,
            place=by_item if plan.lake_lanes > 1 else by_partition,
            splits=plan.splits,
            poison=plan.poison_records,
            poison_ends=plan.poison_ends,
            shards=shards(plan.lake_lanes),
        )
        if self.stage.lake:
            self.stage.lake.s3.most_versions = plan.lake_page
            self.stage.lake.s3.lock_until = LOCKED_UNTIL if plan.lake_locks else None

    # -- a schedule -----------------------------------------------------------------------------

    def small_numbers(self) -> AbstractContextManager[object]:
        """Small runs must meet what only large ones do: a full preview, recounts by the queue."""
        stack = ExitStack()
        stack.enter_context(mock.patch.object(caps, "PREVIEW_ENTRIES", self.plan.preview_entries))
        stack.enter_context(mock.patch.object(tally, "RECOUNT_HERE", self.plan.recount_here))
        return stack

    def run(self) -> None:
        bodies = [body for sent in self.sent for body in sent.bodies]
        bodies += [
            self._rng.choice(bodies) for _ in range(self._rng.choice((0, 0, 1, 3)))
        ]  # workers that did not get the answer
        bodies += self._rng.choices(_POISON_BODIES, k=self.plan.poison_messages)
        if self.plan.redrives:
            bodies.append(partly_refused(self._rng.choice(bodies)))
        self._rng.shuffle(bodies)
        self._unsent = bodies
        self.tasks.spawn(self._send)
        for _ in range(self.plan.ingest_at_once):
            self.tasks.spawn(self.events.poll)
        for _ in range(2):
            self.tasks.spawn(self.recounts.poll)
        self.stream.start()
        if self.plan.redrives:
            self.tasks.spawn(self._redriver.redrive_now_and_then)
        self.tasks.spawn(self._read)
        self.deleter.start([sent.ref for sent in self.sent[: self.plan.deletes]])
        if self.plan.lake:
            self.stream_of_lake.start()
            self.tasks.spawn(self._ask_for_lake_now_and_then)
        for _ in range(self.plan.sweeps):
            self.tasks.spawn(self._sweep_now_and_then)
        self.tasks.run()

    def _read(self) -> None:
        self.tasks.current.sandbox = Sandbox()
        self.reader.read(self.stage.dynamodb)

    def repair(self) -> None:
        """What was given up is moved back; where stream records were lost, runs are recounted, and
        written to the lake."""
        self._redriver.hand_back()
        for queue in (self.events, self.recounts):
            for message in queue.dead:
                self.coverage[f"weather/{queue.name} redriven"] += 1
                queue.waiting.append(Message(message.message_id, message.body))
            queue.dead.clear()
        if self.stream.gone:
            recounts = SqsRecountQueue(self.stage.sqs, RECOUNTS)  # type: ignore[arg-type]
            for sent in self.sent:
                recounts.request_recount(sent.ref, None)
        self.faults.stop()
        self.weather.badness = 0
        for queue in (self.events, self.recounts):
            self.tasks.spawn(queue.poll)
        self.stream.start()
        if self.plan.lake:
            self.stream_of_lake.start()
        self.tasks.run()
        self._sweep_at_rest()
        self.deleter.finish()
        if self.plan.lake:
            self._repair_lake()

    def _repair_lake(self) -> None:
        """Once all is read that can be, who reads the letters has those runs written."""
        self.stream_of_lake.start()
        self.tasks.run()
        gone = {sent.ref for sent in self.sent} if self.stream_of_lake.gone else set()
        self.tasks.spawn(lambda: self._lake.ask_for(gone | self._lake.given_up))
        self.tasks.run()

    def _ask_for_lake_now_and_then(self) -> None:
        refs = [sent.ref for sent in self.sent]
        self._lake.ask_now_and_then(refs, self.plan.lake_asks)

    def _sweep_now_and_then(self) -> None:
        """At any moment, by a clock that runs ahead or behind, and not always to its end."""
        for _ in range(self._sweep_draw.randint(0, 120)):
            self.tasks.pause()
        self._sweep_clock_s = self._sweep_draw.randint(-300, SWEPT_AFTER_S)
        if self._sweep_draw.random() < 0.5:
            self.stage.dynamodb.settle()
        left = [240_000] * self._sweep_draw.choice((1, 5, 1_000))
        try:
            in_sandbox(self.tasks, lambda: self._sweep_once(lambda: left.pop() if left else 0))
        except (Unavailable, Killed) as end:
            self.coverage[f"weather/sweep ended by {type(end).__name__}"] += 1
        self._take_recounts()

    def _sweep_at_rest(self) -> None:
        """Twice: the first goes on where the last one stopped; the second comes by all, and knows
        of no tour before, so that each has its turn."""
        self._sweep_clock_s = SWEPT_AFTER_S
        for _ in range(2):
            self.stage.dynamodb.settle()
            self._sweep_once(lambda: 240_000)
            self._take_recounts()
            self.tasks.spawn(self.recounts.poll)
            self.tasks.run()
            self.stage.dynamodb.items.pop((keys.SWEEP, keys.SWEEP), None)

    def _sweep_once(self, left_ms: Callable[[], int]) -> dict[str, Any]:
        return dict(sweep_handler.process(left_ms, self._sweep))

    def _send(self) -> None:
        while self._unsent:
            if len(self._unsent) == self.plan.lake_late:
                self._lake.wait_for_summary(sent.ref for sent in self.sent)
            self.events.send(self._unsent.pop())
            if self._rng.random() < 0.5:
                self.tasks.pause()

    def _may_still_store(self) -> bool:
        return self._redriver.active or self._messages_are_left()

    def _may_still_count(self) -> bool:
        return self._redriver.active or self._others_go_on()

    def _messages_are_left(self) -> bool:
        return bool(self._unsent or self.events.waiting or self.events.in_flight)

    def _others_go_on(self) -> bool:
        """All but the one who moves dead letters back, and who waits for this to end."""
        self._take_recounts()
        return bool(
            self.recounts.waiting
            or self._messages_are_left()
            or self.stream.behind()
            or self.stream.in_flight
        )

    # -- invocations ----------------------------------------------------------------------------

    def _ingest_batch(self, records: list[dict[str, Any]]) -> set[str]:
        ingest = self._rng.choice(self._ingests)
        return self._failed_of(lambda: ingest_handler.process({"Records": records}, ingest))

    def _summarize_batch(self, records: list[dict[str, Any]]) -> set[str]:
        event = {"Records": records}
        return self._failed_of(lambda: summarize_handler.process(event, self._summarize))

    def _recount_batch(self, records: list[dict[str, Any]]) -> set[str]:
        event = {"Records": records}
        return self._failed_of(lambda: recount_handler.process(event, self._recount))

    def _failed_of(self, work: Callable[[], dict[str, Any]]) -> set[str]:
        try:
            with self.deleter.quiet_time.writing():
                answer = in_sandbox(self.tasks, work)
        finally:
            self._take_recounts()
        return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}

    def _take_recounts(self) -> None:
        for message in self.stage.sqs.queues.pop(RECOUNTS, []):
            self.recounts.send(message.body)

    def _passes(self, record: Record) -> bool:
        return passes_filter(record)

    def _passes_to_lake(self, record: Record) -> bool:
        return passes_filter_of_lake(record)

    def _keep_failed_batch(self, records: list[dict[str, Any]]) -> None:
        """As Lambda does: an object with the records, which the bucket announces."""
        name = f"failed-{len(self.stage.failed_batches.objects)}"
        content = {"payload": json.dumps({"Records": records}, default=str)}
        self.stage.failed_batches.objects[name] = json.dumps(content).encode()
        self.recounts.send(json.dumps({"Records": [{"s3": {"object": {"key": name}}}]}))

    def _clock(self) -> Callable[[], int]:
        """Minutes off, and now and then set back."""
        skew = self._rng.randint(-_FIVE_MINUTES_NS, _FIVE_MINUTES_NS)
        rng = random.Random(self.plan.seed + 5)  # noqa: S311
        return lambda: NOW_NS + skew + rng.randint(-(10**9), 10**9)
