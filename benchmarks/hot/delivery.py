"""SQS and Lambda's event sources in virtual time: pollers that grow, shards that go in order.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html (with partial failures
reported, polling is not slowed down when they occur)
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.hot.virtual_time import VirtualTime
from tests.runner.answers import failed_ids
from tests.runner.streams import StreamMapping, StreamRunner

FIRST_AT_ONCE: Final = 5
MORE_A_SECOND: Final = 5
"""300 a minute."""
MOST_AT_ONCE: Final = 1_000

_STREAM_POLL_S: Final = 0.25
"""Lambda polls a shard four times a second:
https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html"""

type Handler = Callable[[dict[str, Any]], dict[str, Any]]
type Environments = Callable[[], Handler]
"""Makes the function's next environment, which takes one event at a time and is used again."""


@dataclass(frozen=True, slots=True)
class Redelivery:
    """As the queue is deployed."""

    visibility_s: float
    deliveries: int
    timeout_s: float
    delay_s: float = 0
    most_at_once: int = MOST_AT_ONCE


@dataclass(eq=False, slots=True)
class Message:
    message_id: str
    body: str
    sent_at: float
    receives: int = 0


@dataclass
class Delivered:
    invocations: int = 0
    messages: int = 0
    redeliveries: int = 0
    most_receives: int = 0
    most_at_once: int = 0
    timeouts: int = 0
    longest_s: float = 0
    finished_at: float = 0


class PolledQueue:
    """A standard queue and the event source mapping that empties it."""

    def __init__(self, time: VirtualTime, redelivery: Redelivery, made: Environments) -> None:
        self._time, self._redelivery, self._made = time, redelivery, made
        self._visible: deque[Message] = deque()
        self._idle: list[Handler] = []
        self._busy = 0
        self._at_once = FIRST_AT_ONCE
        self._growing = False
        self.unfinished: dict[str, Message] = {}
        self.dead: list[Message] = []
        self.done = Delivered()

    def send(self, body: str) -> None:
        message = Message(f"m-{self.done.messages}", body, self._time.now)
        self.done.messages += 1
        self.unfinished[message.message_id] = message
        self._show_after(message, self._redelivery.delay_s)

    @property
    def oldest_s(self) -> float:
        """How long the message has waited that waits for longest."""
        first = min((one.sent_at for one in self.unfinished.values()), default=self._time.now)
        return self._time.now - first

    def _show_after(self, message: Message, seconds: float) -> None:
        def show() -> None:
            self._visible.append(message)
            self._poll()

        if seconds:
            self._time.spawn(show, seconds)
        else:
            show()

    def _poll(self) -> None:
        while self._visible and self._busy < self._at_once:
            batch = [one for one in self._receive() if self._may_be_tried(one)]
            if batch:
                self._busy += 1
                self._time.spawn(lambda batch=batch: self._invoke(batch))  # type: ignore[misc]
        if self._visible and not self._growing:
            self._growing = True
            self._time.spawn(self._grow, 1)

    def _receive(self) -> list[Message]:
        return [self._visible.popleft() for _ in range(min(10, len(self._visible)))]

    def _may_be_tried(self, message: Message) -> bool:
        if message.receives >= self._redelivery.deliveries:
            self.dead.append(self.unfinished.pop(message.message_id))
            return False
        message.receives += 1
        self.done.redeliveries += message.receives > 1
        self.done.most_receives = max(self.done.most_receives, message.receives)
        return True

    def _grow(self) -> None:
        """By the second, while messages wait; back to the beginning when none does."""
        while self._visible:
            self._at_once = min(self._at_once + MORE_A_SECOND, self._redelivery.most_at_once)
            self._poll_more()
            self._time.sleep(1)
        self._growing = False
        self._at_once = FIRST_AT_ONCE

    def _poll_more(self) -> None:
        if self._busy < self._at_once:
            self._poll()

    def _invoke(self, batch: list[Message]) -> None:
        began = self._time.now
        self.done.invocations += 1
        self.done.most_at_once = max(self.done.most_at_once, self._busy)
        handler = self._idle.pop() if self._idle else self._made()
        records = [{"messageId": one.message_id, "body": one.body} for one in batch]
        failed = failed_ids(handler, records, [one.message_id for one in batch])
        took = self._time.now - began
        self.done.longest_s = max(self.done.longest_s, took)
        if took > self._redelivery.timeout_s:
            self.done.timeouts += 1
            failed = {one.message_id for one in batch}
        for message in batch:
            if message.message_id in failed:
                hidden = began + self._redelivery.visibility_s - self._time.now
                self._show_after(message, max(0.0, hidden))
            else:
                del self.unfinished[message.message_id]
                self.done.finished_at = self._time.now
        self._idle.append(handler)
        self._busy -= 1
        self._poll_more()


@dataclass
class Shard:
    """Records of one shard, counted in order, one batch at a time."""

    time: VirtualTime
    runner: StreamRunner
    window_s: float
    waiting: list[dict[str, Any]] = field(default_factory=list)
    working: bool = False

    def add(self, record: dict[str, Any]) -> None:
        self.waiting.append(record)
        if not self.working:
            self.working = True
            self.time.spawn(self._work, _STREAM_POLL_S)

    def _work(self) -> None:
        most = self.runner.mapping.batch_size
        while self.waiting:
            if len(self.waiting) < most:
                self.time.sleep(self.window_s)
            batch, self.waiting = self.waiting[:most], self.waiting[most:]
            self.runner.deliver(batch)
        self.working = False


class Shards:
    """The stream's event source mapping: a shard for each partition. `given_up` counts records."""

    def __init__(
        self,
        time: VirtualTime,
        mapping: StreamMapping,
        made: Environments,
        passes: Callable[[dict[str, Any]], bool],
    ) -> None:
        self._time, self._mapping, self._made, self._passes = time, mapping, made, passes
        self._shards: dict[Hashable, Shard] = {}
        self.given_up = 0

    def add(self, shard: Hashable, record: dict[str, Any]) -> None:
        if self._passes(record):
            if shard not in self._shards:
                runner = StreamRunner(self._mapping, self._made(), self._give_up)
                self._shards[shard] = Shard(self._time, runner, 1)
            self._shards[shard].add(record)

    @property
    def waiting(self) -> int:
        return sum(len(shard.waiting) for shard in self._shards.values())

    def _give_up(self, records: list[dict[str, Any]]) -> None:
        self.given_up += len(records)
