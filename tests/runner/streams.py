"""A DynamoDB stream's event source mapping: filter, batch, resume, bisect, give up."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.infra.event_pattern import passes
from tests.runner.answers import Handler, failed_ids

type Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamMapping:
    """The settings of one mapping, as in the template."""

    batch_size: int
    retries: int
    bisect: bool
    reports_failures: bool
    patterns: tuple[Mapping[str, Any], ...]

    @classmethod
    def from_template(cls, properties: Mapping[str, Any]) -> Self:
        filters = properties["FilterCriteria"]["Filters"]
        return cls(
            batch_size=properties["BatchSize"],
            retries=properties["MaximumRetryAttempts"],
            bisect=properties["BisectBatchOnFunctionError"],
            reports_failures="ReportBatchItemFailures" in properties["FunctionResponseTypes"],
            patterns=tuple(json.loads(one["Pattern"]) for one in filters),
        )


@dataclass(slots=True)
class StreamRunner:
    """Delivers one shard's records in order. `given_up` gets what exhausts its retries."""

    mapping: StreamMapping
    handler: Handler
    given_up: Callable[[list[Record]], None]
    deliveries: list[int] = field(default_factory=list)
    """The size of every batch that was handed over."""

    def deliver(self, records: Sequence[Record]) -> None:
        wanted = [record for record in records if passes(record, self.mapping.patterns)]
        for start in range(0, len(wanted), self.mapping.batch_size):
            self._batch(wanted[start : start + self.mapping.batch_size])

    def _batch(self, batch: list[Record]) -> None:
        attempts = 0
        while batch:
            resume_at = self._invoke(batch)
            if resume_at is None:
                return
            if resume_at > 0:  # all before it is checkpointed
                batch = batch[resume_at:]
            elif self.mapping.bisect and len(batch) > 1:  # does not count as a retry
                half = len(batch) // 2
                self._batch(batch[:half])
                batch = batch[half:]
            elif attempts < self.mapping.retries:
                attempts += 1
            else:
                self.given_up(batch)
                return

    def _invoke(self, batch: list[Record]) -> int | None:
        """The position to resume at: the lowest failed sequence number; None for success."""
        self.deliveries.append(len(batch))
        ids = [record["dynamodb"]["SequenceNumber"] for record in batch]
        failed = failed_ids(self.handler, batch, ids)
        if not failed:
            return None
        return min(map(ids.index, failed)) if self.mapping.reports_failures else 0
