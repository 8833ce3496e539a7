"""Objects of runs, sent through a stage's event queue once more, and what that comes to."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import NamedTuple, Self

from functions.adapters.s3 import S3ObjectStore
from functions.adapters.sqs import SqsEventQueue
from functions.core.keys import RunRef
from local.at_once import in_order
from local.rebuilding import Content, Stored, content_of, is_too_old
from local.stage import Stage


class Sent(NamedTuple):
    """Of a run: how many steps, each id once, and whether there was an end among the events."""

    steps: int
    ended: bool


class _Looked(NamedTuple):
    """At one object. `content` is None when it had outlived its run."""

    ref: RunRef
    content: Content | None


@dataclass(slots=True)
class Resending:
    """What was sent so far, or with `dry_run` would have been; what had outlived its run, and what
    no run has.

    Holds two numbers a run, and the step ids of one run at a time.
    """

    stage: Stage
    queue: SqsEventQueue
    dry_run: bool
    runs: dict[RunRef, Sent] = field(default_factory=dict)
    too_old: dict[RunRef, int] = field(default_factory=dict)
    objects: int = 0
    expired: int = 0
    foreign: int = 0
    first_foreign: str = ""

    @classmethod
    def on(cls, stage: Stage, *, dry_run: bool) -> Self:
        objects = S3ObjectStore(stage.s3, stage.bucket_name)
        queue = SqsEventQueue(stage.sqs, stage.event_queue_url, objects)
        return cls(stage, queue, dry_run)

    def pass_over(self, key: str) -> None:
        """Of an object that no run has."""
        self.foreign += 1
        self.first_foreign = self.first_foreign or key

    def send(
        self, found: Iterable[Stored], looked_at: Callable[[], object], at_once: int = 1
    ) -> None:
        """Send what is not too old of each object, so many at a time; call `looked_at` once for
        each. Objects of one run come one after the other."""
        with ThreadPoolExecutor(at_once) as pool:
            looked = in_order(pool, at_once, self._send_one(), found)
            for ref, of_run in groupby(looked, key=lambda one: one.ref):
                step_ids: set[str] = set()
                ended = False
                for content in self._counted(of_run, looked_at):
                    step_ids |= content.step_ids
                    ended |= content.ends
                    self.runs[ref] = Sent(len(step_ids), ended)

    def _counted(
        self, looked: Iterable[_Looked], looked_at: Callable[[], object]
    ) -> Iterator[Content]:
        """Those that were sent."""
        for ref, content in looked:
            looked_at()
            if content is None:
                self.expired += 1
                continue
            if content.too_old:
                self.too_old[ref] = self.too_old.get(ref, 0) + content.too_old
            if content.body is not None:
                self.objects += 1
                yield content

    def _send_one(self) -> Callable[[Stored], _Looked]:
        """May be called from several threads, since it counts nothing."""
        days = self.stage.retention_days
        # An object outlives its run by some days; ingest would refuse its events as too old.
        horizon = datetime.now(UTC) - timedelta(days=days)
        too_old = partial(is_too_old, now_ns=time.time_ns(), retention_days=days)
        s3, bucket = self.stage.s3, self.stage.bucket_name

        def send_one(stored: Stored) -> _Looked:
            if stored.stored_at < horizon:
                return _Looked(stored.ref, None)
            content = content_of(s3, bucket, stored, too_old)
            if content.body is not None and not self.dry_run:
                self.queue.send_events(stored.ref.tenant_id, content.body)
            return _Looked(stored.ref, content)

        return send_one
