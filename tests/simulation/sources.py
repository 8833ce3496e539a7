"""The queue and the stream as Lambda reads them, at their worst."""

import random
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from functions.core import keys
from tests.simulation.tasks import Killed, Sandbox, Task, Tasks

type Record = dict[str, Any]
type Invoke = Callable[[list[Record]], set[str]]
"""Hands a batch to a function; the ids that failed. Raises Killed, or what the function raised."""


@dataclass(eq=False)
class Message:
    message_id: str
    body: str
    receives: int = 0
    gone: bool = False


@dataclass(eq=False)
class Weather:
    """How bad it is outside the functions, and what of it came to pass."""

    draw: random.Random
    badness: float
    coverage: Counter[str]

    def strikes(self, what: str, share: float = 1.0) -> bool:
        if self.draw.random() >= self.badness * share:
            return False
        self.coverage[f"weather/{what}"] += 1
        return True


@dataclass(eq=False)
class Queue:
    """A standard queue: any order, sometimes twice, a message back while it is still worked on."""

    name: str
    tasks: Tasks
    weather: Weather
    invoke: Invoke
    busy: Callable[[], bool]
    """Whether messages may still come."""
    most_receives: int = 6
    waiting: list[Message] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    in_flight: int = 0
    sent: int = 0

    def send(self, body: str) -> None:
        self.waiting.append(Message(f"{self.name}-{self.sent}", body))
        self.sent += 1
        self.tasks.changed()

    def poll(self) -> None:
        """One of Lambda's pollers, until nothing can come any more."""
        draw = self.weather.draw
        while True:
            if not self.waiting:
                if not self.in_flight and not self.busy():
                    return
                self.tasks.idle()
                continue
            batch = self._receive(draw.choice((1, 1, 2, 3, 10)))
            if batch:
                self._deliver(batch)
            self.tasks.pause()

    def _receive(self, most: int) -> list[Message]:
        draw = self.weather.draw
        if self.weather.strikes("reordered"):
            draw.shuffle(self.waiting)
        taken, self.waiting = self.waiting[:most], self.waiting[most:]
        batch = []
        for message in taken:
            if message.receives >= self.most_receives:
                self.dead.append(message)
                continue
            message.receives += 1
            batch.append(message)
            if self.weather.strikes("zombie", 0.3):  # visible again while this one is worked on
                self.waiting.append(Message(message.message_id, message.body, message.receives))
        return batch

    def _deliver(self, batch: list[Message]) -> None:
        records = [{"messageId": f"{n}", "body": m.body} for n, m in enumerate(batch)]
        self.in_flight += 1
        try:
            failed = self.invoke(records)
        except Killed:
            failed = {record["messageId"] for record in records}
            self.weather.coverage[f"weather/{self.name} killed"] += 1
        finally:
            self.in_flight -= 1
            self.tasks.changed()
        for record, message in zip(records, batch, strict=True):
            if record["messageId"] in failed:
                self.weather.coverage[f"weather/{self.name} partly failed"] += 1
                self.waiting.append(message)
            elif self.weather.strikes("delivered again", 0.3):
                self.waiting.append(message)


@dataclass(eq=False)
class Shard:
    """A shard's records in order, and how far they were processed."""

    low: int
    high: int
    parent: "Shard | None" = None
    records: list[Record] = field(default_factory=list)
    position: int = 0
    closed: bool = False

    def drained(self) -> bool:
        return self.closed and self.position >= len(self.records)

    def ready(self) -> bool:
        return self.parent is None or (self.parent.drained() and self.parent.ready())


_SPACE = 2**32


def by_partition(record: Record) -> int:
    """Where its shard is: order per partition key."""
    return zlib.crc32(record["dynamodb"]["Keys"]["PK"]["S"].encode())


def by_item(record: Record) -> int:
    """Order per item only, as with a parallelization factor above 1."""
    key = record["dynamodb"]["Keys"]
    return zlib.crc32(f"{key['PK']['S']} {key['SK']['S']}".encode())


def shards(many: int) -> list[Shard]:
    edges = [_SPACE * n // many for n in range(many + 1)]
    return [Shard(low, high) for low, high in pairwise(edges)]


@dataclass(eq=False)
class Stream:
    """A table's stream as one function reads it: order as `place` says; shards split; batches of
    any size; retries from the lowest failed number, bisect, then the failure destination."""

    name: str
    tasks: Tasks
    weather: Weather
    invoke: Invoke
    source: list[Record]
    passes: Callable[[Record], bool]
    busy: Callable[[], bool]
    give_up: Callable[[list[Record]], None]
    place: Callable[[Record], int] = by_partition
    splits: int = 0
    most_retries: int = 10
    poison: int = 0
    poison_ends: bool = False
    poisoned: set[str] = field(default_factory=set)
    lost: bool = False
    """Whether what stands on the records may lag, because some were given up, or are gone."""
    given_up: bool = False
    gone: bool = False
    in_flight: int = 0
    shards: list[Shard] = field(default_factory=lambda: shards(1))
    readers: set[Task] = field(default_factory=set)
    _read: int = 0

    def start(self) -> None:
        for shard in self.shards:
            self._start(shard)

    def _start(self, shard: Shard) -> None:
        self.readers.add(self.tasks.spawn(lambda: self._process(shard)))

    def take_in(self) -> None:
        """Sort what was written since into the shards that are open."""
        for record in self.source[self._read :]:
            if self.passes(record):
                place = self.place(record)
                (shard,) = [s for s in self.shards if not s.closed and s.low <= place < s.high]
                shard.records.append(record)
                if self.poison and self.weather.draw.random() < self._poison_chance(record):
                    self.poison -= 1
                    self.poisoned.add(record["dynamodb"]["SequenceNumber"])
                    self._came("record poisoned")
        self._read = len(self.source)
        if self.splits and self.weather.strikes(f"{self.name} shard split"):
            self.splits -= 1
            self._split(self.weather.draw.choice([s for s in self.shards if not s.closed]))

    def _poison_chance(self, record: Record) -> float:
        """Of any record alike, or of the ends of runs above all."""
        if self.poison_ends:
            return float(record["dynamodb"]["Keys"]["SK"]["S"] == keys.RUN)
        return 0.2

    def behind(self) -> bool:
        self.take_in()
        return any(shard.position < len(shard.records) for shard in self.shards)

    def _split(self, shard: Shard) -> None:
        shard.closed = True
        middle = (shard.low + shard.high) // 2
        for child in (Shard(shard.low, middle, shard), Shard(middle, shard.high, shard)):
            self.shards.append(child)
            self._start(child)

    def _process(self, shard: Shard) -> None:
        attempts = 0
        size: int | None = None
        while True:
            self.take_in()
            if not shard.ready() or shard.position >= len(shard.records):
                if shard.drained() or (not self.busy() and not self.behind()):
                    return
                self.tasks.idle()
                continue
            if self.weather.strikes(f"{self.name} outage of a day", 0.02):
                self.lost = self.gone = True
                shard.position = len(shard.records)
                continue
            start = shard.position
            if self.weather.strikes(f"{self.name} batch again", 0.3):  # a checkpoint that was lost
                start = self.weather.draw.randint(0, start)
            most = len(shard.records) - shard.position
            end = shard.position + (size or self.weather.draw.randint(1, most))
            done = self._attempt(shard.records[start:end])
            done_to = start + done
            if done_to >= end:
                shard.position, attempts, size = max(shard.position, end), 0, None
            elif done_to > shard.position:
                shard.position, attempts, size = done_to, 0, None
            elif end - shard.position > 1:  # bisecting does not count as a retry
                size = (end - shard.position) // 2
                self._came("bisected")
            elif attempts < self.most_retries:
                attempts, size = attempts + 1, 1
            else:
                self.lost = self.given_up = True
                self._came("given up")
                self.give_up(shard.records[shard.position : end])
                shard.position, attempts, size = end, 0, None
            self.tasks.pause()

    def _attempt(self, batch: list[Record]) -> int:
        """How many records from the start of the batch are done with."""
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        if self.poisoned & set(numbers):
            return 0  # the function breaks down over it, whatever else is in the batch
        self.in_flight += 1
        try:
            failed = self.invoke(batch)
        except Killed:
            self._came("killed")
            return 0
        finally:
            self.in_flight -= 1
            self.tasks.changed()
        if self.weather.strikes(f"{self.name} answer lost", 0.2):
            return 0
        return min((numbers.index(number) for number in failed), default=len(batch))

    def _came(self, what: str) -> None:
        self.weather.coverage[f"weather/{self.name} {what}"] += 1


def in_sandbox(tasks: Tasks, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run an invocation on the task at hand: killed, it takes with it what it has under way."""
    task = tasks.current
    outer, task.sandbox = task.sandbox, Sandbox()
    try:
        return work()
    except Killed:
        task.sandbox.dead = True
        raise
    finally:
        task.sandbox = outer
