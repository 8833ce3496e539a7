"""Somebody who moves dead letters back while all goes on, with the command line's own code.

Whoever does that moves too many, too early, or twice; and is interrupted.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from local import queues
from local.dead_letters_redrive import Redrive
from tests.fakes.sqs import MemorySQS, Sent
from tests.memory_stage import DEAD_LETTERS, EVENTS, RECOUNTS
from tests.simulation.sources import Message, Queue
from tests.simulation.tasks import Killed, Sandbox, Tasks

RECOUNTS_DEAD = "memory://recounts-dead"
_WITHIN_S = 60


@dataclass(eq=False)
class Redriver:
    """`fake` holds the dead letters, `client` is the way to it that may fail."""

    tasks: Tasks
    draw: random.Random
    coverage: Counter[str]
    fake: MemorySQS
    client: Any
    of: Mapping[str, Queue]
    times: int
    busy: Callable[[], bool]
    """Whether anything may still become a dead letter."""
    active: bool = field(init=False)
    """Whether it may still move something, also when it has not begun."""

    def __post_init__(self) -> None:
        self.active = self.times > 0

    def redrive_now_and_then(self) -> None:
        self.tasks.current.sandbox = Sandbox()
        while self.times:
            self.take_in()
            meant = [name for name in self.of if self.fake.queues.get(_dead(name))]
            if meant:
                self.times -= 1
                self._redrive(self.draw.choice(meant))
            elif not self.busy():
                break
            else:
                self.tasks.idle()
        self.active = False
        self.tasks.changed()

    def take_in(self) -> None:
        """What SQS does by itself: it moves what came too often, and shows again what was hidden
        long enough. It also moves what never reached a function that was throttled (F4)."""
        for name, queue in self.of.items():
            letters = self.fake.queues.setdefault(_dead(name), [])
            if self.times and queue.waiting and self.draw.random() < 0.1:
                queue.dead.append(queue.waiting.pop(self.draw.randrange(len(queue.waiting))))
                self.coverage[f"weather/{queue.name} given up unseen"] += 1
            letters += [Sent(message.message_id, message.body) for message in queue.dead]
            queue.dead.clear()
            for letter in letters:
                letter.visible_at = 0

    def hand_back(self) -> None:
        """All that was given up is moved back at last; what was refused stays."""
        self.take_in()
        for name, queue in self.of.items():
            letters = self.fake.queues[_dead(name)]
            given_up = [letter for letter in letters if not letter.attributes]
            queue.dead += [Message(letter.message_id, letter.body) for letter in given_up]
            letters[:] = [letter for letter in letters if letter.attributes]
        self.collect()

    def collect(self) -> None:
        """What was sent to the event queue is there."""
        for sent in self.fake.queues.pop(EVENTS, []):
            self.of["events"].send(sent.body)

    def _redrive(self, name: str) -> None:
        there = [letter.message_id for letter in self.fake.queues[_dead(name)]]
        ids = self.draw.sample(there, self.draw.randint(1, len(there)))
        queue = queues.Queue(name, {"events": EVENTS, "recounts": RECOUNTS}[name], _dead(name))
        stage = cast("Any", SimpleNamespace(sqs=self.client))
        try:
            Redrive(stage, _WITHIN_S, sleep=lambda _: None).move(queue, ids, lambda _: None)
            self.coverage[f"weather/{name} moved back"] += 1
        except (Killed, ClientError, BotoCoreError):
            self.coverage[f"weather/{name} moving back cut off"] += 1
        finally:
            self.collect()


def _dead(name: str) -> str:
    return {"events": DEAD_LETTERS, "recounts": RECOUNTS_DEAD}[name]


def partly_refused(body: str) -> str:
    """The same message with one more event, which can never be accepted."""
    return body.replace('"events":[', '"events":[{"type":"step"},', 1)
