"""The queues of a stage, and how far it is with what was sent to them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from local.stage import Stage

_DEAD: Final = "_dead_letter_url"
_OF_ENTRIES: Final = "jobs/"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of a stage, and the one in which its dead letters lie."""

    name: str
    url: str
    dead_letters_url: str


def queues_of(stage: Stage) -> list[Queue]:
    """All of them, found by the names of the outputs: one that is added later is among them.

    Those of service entries are called `jobs/{name}`, which is no name of another.
    """
    found = list(_named(stage))
    jobs: dict[str, str] = json.loads(stage.service_entry_queue_urls)
    dead: dict[str, str] = json.loads(stage.service_entry_dead_letter_urls)
    return found + [Queue(_OF_ENTRIES + name, url, dead[name]) for name, url in jobs.items()]


def _named(stage: Stage) -> Iterator[Queue]:
    for field in fields(stage):
        if field.name.endswith(_DEAD):
            what = field.name.removesuffix(_DEAD).removesuffix("_queue")
            url, dead_letters_url = getattr(stage, f"{what}_queue_url"), getattr(stage, field.name)
            yield Queue(f"{what}s", url, dead_letters_url)


def dead_letters(stage: Stage) -> int:
    """Messages that were refused or failed too often, of the event queue and the recount queue."""
    queues = (stage.event_queue_dead_letter_url, stage.recount_dead_letter_url)
    return sum(length(stage, queue) for queue in queues)


def unfinished(stage: Stage) -> int:
    """Messages that are not done with: waiting, delayed, or being worked on."""
    return sum(length(stage, queue) for queue in (stage.event_queue_url, stage.recount_queue_url))


def length(stage: Stage, queue_url: str) -> int:
    """Messages of one queue: waiting, delayed, or being worked on; SQS counts approximately."""
    answer = stage.sqs.get_queue_attributes(
        QueueUrl=queue_url,
        AttributeNames=[
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ],
    )
    return sum(int(number) for number in answer["Attributes"].values())
