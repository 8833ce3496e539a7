"""Sending recorded bodies with the worker library's own sender: all at once, or as time went."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from local.commands import LocalStageError
from local.recordings import Recording
from local.stage import Stage
from runtally import wire
from runtally.cuts import Sealed
from runtally.senders import SqsSender

_AT_ONCE: Final = 10
_ADVICE: Final = "Is the stage still up? `runtally up` says so."


def send(
    stage: Stage,
    recorded: Sequence[Recording],
    *,
    speed: float = 0,
    on_sent: Callable[[int], object] = lambda _: None,
) -> None:
    """Send every message once; bodies over the queue's limit go by way of the bucket.

    With a `speed`, each message goes when its last event happened, that many times as fast as it
    did; without, as fast as the queue takes them. Raises LocalStageError for what was not taken.
    """
    sender = SqsSender(stage.event_queue_url, stage.bucket_name, sqs=stage.sqs, s3=stage.s3)
    for messages in _paced(recorded, speed) if speed else _all(recorded):
        delivery = sender.send(messages)
        refused = [why for _, why in delivery.refused]
        if delivery.unsent or refused:
            failed = f"{len(delivery.unsent) + len(refused)} messages were not sent."
            raise LocalStageError("\n".join([failed, *refused]), _ADVICE)
        on_sent(len(messages))


def _all(recorded: Iterable[Recording]) -> Iterator[Sequence[Sealed]]:
    bodies = (body for recording in recorded for body in recording.messages)
    return itertools.batched(map(_sealed, bodies), _AT_ONCE, strict=False)


def _paced(recorded: Iterable[Recording], speed: float) -> Iterator[Sequence[Sealed]]:
    """Messages one by one, each run from its own beginning, all beginning now."""
    due: list[tuple[float, bytes]] = []
    for recording in recorded:
        times = [_happened(body) for body in recording.messages]
        after = [(at - min(times)) / 1e9 / speed for at in times]
        due += zip(after, recording.messages, strict=True)
    started = time.monotonic()
    for after_s, body in sorted(due, key=lambda entry: entry[0]):
        time.sleep(max(0, started + after_s - time.monotonic()))
        yield [_sealed(body)]


def _sealed(body: bytes) -> Sealed:
    return Sealed(body, events=len(wire.open_message(body.decode()).lines))


def _happened(body: bytes) -> int:
    """When the last of a message's events happened."""
    lines = wire.open_message(body.decode()).lines
    return max(_time_of(wire.decode_event(line, "")) for line in lines)


def _time_of(event: wire.Event) -> int:
    match event:
        case wire.Step():
            return event.ended_at
        case wire.RunStarted() | wire.RunLog() | wire.RunEnded():
            return event.at
    return 0
