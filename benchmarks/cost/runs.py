"""Runs recorded through the SDK and the pipeline, each in a world of its own."""

import contextlib
import io
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import batched, pairwise
from typing import Final, cast

from benchmarks.cost.calls import EVERY_SECOND, RECORDED, Agents, Pace, calls
from benchmarks.cost.stage import CountedStage, EventQueue
from benchmarks.cost.usage import Usage
from benchmarks.cost.virtual_time import VirtualTime, Worker, sqs_sender
from local import recordings
from local.paths import ROOT
from local.recordings import Recording
from runtally import wire
from runtally.cuts import AFTER_S, Cut
from tests.fakes.s3 import MemoryS3

HOUR_S: Final = 3_600
RECORDINGS: Final = ROOT / "local" / "samples" / "recordings"
TIMES_EACH: Final = 4
"""How often each recording is played within the hour."""


@contextmanager
def _world() -> Iterator[tuple[VirtualTime, CountedStage]]:
    with VirtualTime() as time, contextlib.redirect_stdout(io.StringIO()):
        yield time, CountedStage(time)
        time.run()


def _worker(time: VirtualTime, cloud: CountedStage, send_after_s: float = AFTER_S) -> Worker:
    return Worker(time, cloud.queue, cloud.stage.s3, cloud.receive, send_after_s)


def fan_out(
    count: int, at_once: int, pace: Pace = RECORDED, send_after_s: float = AFTER_S
) -> Usage:
    """A run with so many agents at once, by the SDK's defaults unless said otherwise."""
    with _world() as (time, cloud):
        Agents(time, _worker(time, cloud, send_after_s), calls(count, pace), at_once)
    return cloud.usage()


def events_of(count: int, at_once: int, pace: Pace = RECORDED) -> list[wire.RunEvent]:
    """What the worker of such a run sends."""
    queue = EventQueue()
    with VirtualTime() as time:
        worker = Worker(time, queue, MemoryS3(), lambda: None)
        Agents(time, worker, calls(count, pace), at_once)
        time.run()
    return _events_in(queue.bodies)


def slow_run(seconds: int, send_after_s: float = AFTER_S) -> Usage:
    """One step a second, by the SDK's defaults unless said otherwise."""
    return fan_out(seconds, 1, EVERY_SECOND, send_after_s)


def packed(events: Sequence[wire.RunEvent], size: int) -> Usage:
    """A run whose steps are sent so many a message, each when its last step ends."""
    start, *middle, end = events
    bodies = [[start], *map(list, batched(middle, size, strict=False))]
    bodies[-1].append(end)
    head = wire.Head(1, "acme", "packed")
    with _world() as (time, cloud):
        sender = sqs_sender(cloud.queue, cloud.stage.s3)

        def send(body: list[wire.RunEvent]) -> None:
            sender.send([Cut(head, [wire.encode_event(event) for event in body]).seal()])
            cloud.receive()

        began = _at(start)
        for body in bodies:
            time.after((max(map(_at, body)) - began) / 1e9, partial(send, body))
    return cloud.usage()


def mixed_hour(pace: Pace | None) -> Usage:
    """Every shipped recording some times, beginning at any time of an hour, by the SDK's defaults;
    each run has a worker of its own. With a pace, one call after the other takes its time from it;
    without, runs go as fast as they were recorded: their models are scripts."""
    rng = random.Random(1)  # noqa: S311 - reproducible is the point
    recorded = [run for path in sorted(RECORDINGS.glob("*.gz")) for run in recordings.load(path)]
    with _world() as (time, cloud):
        for number in range(TIMES_EACH):
            for run in recorded:
                worker = _worker(time, cloud)
                run_id = f"{run.run_id}-{number}"
                played = _Played(time, worker, run_id, _paced(run, pace, rng))
                time.after(rng.uniform(0, HOUR_S), played.go_on)
    return cloud.usage()


class _Played:
    """Events of a run, each recorded when it is due."""

    def __init__(
        self, time: VirtualTime, worker: Worker, run_id: str, due: list[tuple[float, wire.RunEvent]]
    ) -> None:
        self._time = time
        self._worker = worker
        self._run_id = run_id
        self._due = iter(due)

    def go_on(self) -> None:
        for seconds, event in self._due:
            self._time.after(seconds, partial(self._record, event))
            return

    def _record(self, event: wire.RunEvent) -> None:
        ends = isinstance(event, wire.RunStarted | wire.RunEnded)
        self._worker.recorder.record_events(self._run_id, [event], at_once=ends)
        self._worker.turn()
        self.go_on()


def _paced(
    run: Recording, pace: Pace | None, rng: random.Random
) -> list[tuple[float, wire.RunEvent]]:
    """Events in the order in which they happened, each with the seconds since the one before."""
    events = sorted(_events_in([body.decode() for body in run.messages]), key=_at)
    if pace is None:
        times = [_at(event) for event in events]
        gaps = [0, *(later - earlier for earlier, later in pairwise(times))]
        return [(gap / 1e9, event) for gap, event in zip(gaps, events, strict=True)]
    return [(_seconds(event, pace, rng), event) for event in events]


def _seconds(event: wire.Event, pace: Pace, rng: random.Random) -> float:
    """An agent's step ends with the last of its calls."""
    match event:
        case wire.Step(kind="model"):
            return rng.choice(pace.model)
        case wire.Step(kind="tool"):
            return rng.choice(pace.tool)
    return 0


def _events_in(bodies: list[str]) -> list[wire.RunEvent]:
    messages = [wire.open_message(body) for body in bodies]
    decoded = [wire.decode_event(line, "") for message in messages for line in message.lines]
    return cast("list[wire.RunEvent]", decoded)  # all of them are of runs


def _at(event: wire.RunEvent) -> int:
    return event.ended_at if isinstance(event, wire.Step) else event.at
