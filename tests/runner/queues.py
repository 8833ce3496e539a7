"""An SQS queue's event source mapping: batch, delete what succeeded, dead-letter what cannot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from tests.runner.answers import Handler, failed_ids


@dataclass(frozen=True, slots=True)
class QueueMapping:
    batch_size: int
    reports_failures: bool

    @classmethod
    def from_template(cls, properties: Mapping[str, Any]) -> Self:
        return cls(
            batch_size=properties["BatchSize"],
            reports_failures="ReportBatchItemFailures" in properties["FunctionResponseTypes"],
        )


class Queue(Protocol):
    """A queue with a redrive policy of its own."""

    def receive(self, most: int) -> list[dict[str, Any]]:
        """Records as Lambda delivers them; each receive counts towards the dead letters."""

    def delete(self, record: dict[str, Any]) -> None: ...

    def release(self, record: dict[str, Any]) -> None:
        """Make the message visible again, as its visibility timeout would."""


@dataclass(slots=True)
class QueueRunner:
    mapping: QueueMapping
    queue: Queue
    handler: Handler
    deliveries: list[int] = field(default_factory=list)

    def drain(self) -> None:
        """Deliver until the queue is empty; every message ends deleted or dead-lettered."""
        while records := self.queue.receive(self.mapping.batch_size):
            self.deliveries.append(len(records))
            ids = [record["messageId"] for record in records]
            failed = failed_ids(self.handler, records, ids)
            if failed and not self.mapping.reports_failures:
                failed = set(ids)
            for record in records:
                if record["messageId"] in failed:
                    self.queue.release(record)
                else:
                    self.queue.delete(record)
