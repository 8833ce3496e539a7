"""Runs counted anew, recounts asked for of those that differ, and looks at what became of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import msgspec

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.adapters.sqs import SqsRecountQueue
from functions.core.keys import RunRef
from local.reconciling import Reconcile, Reconciled
from local.stage import Stage


@dataclass(frozen=True, slots=True)
class Recounting:
    """Runs of any tenant. `pause` is called between two looks at one."""

    reader: DynamoDBRunReader
    recounts: SqsRecountQueue
    pause: Callable[[], object]

    @classmethod
    def on(cls, stage: Stage, pause: Callable[[], object]) -> Self:
        reader = DynamoDBRunReader(DynamoDBTable(stage.dynamodb, stage.table_name))
        return cls(reader, SqsRecountQueue(stage.sqs, stage.recount_queue_url), pause)

    def __call__(self, ref: RunRef, *, force: bool = False) -> Reconciled | None:
        """What the run's sums say beside its step items; a recount is asked for where they differ,
        and in any case with `force`. None for a run that is not there."""
        found = self._look(ref)
        if found is None or not (force or found.drift):
            return found
        self.recounts.request_recount(ref, None)
        return msgspec.structs.replace(found, recount_requested=True)

    def settled(
        self,
        ref: RunRef,
        found: Reconciled | None,
        whole: Callable[[Reconciled | None], bool],
        late: Callable[[], bool],
    ) -> Reconciled | None:
        """What the first look finds that is `whole`, or the last one before it is `late`. No second
        recount is asked for."""
        while not whole(found) and not late():
            self.pause()
            if found is None or not found.recount_requested:
                found = self(ref)
            elif (latest := self._look(ref)) is None:
                found = None
            else:
                found = msgspec.structs.replace(latest, recount_requested=True)
        return found

    def _look(self, ref: RunRef) -> Reconciled | None:
        return Reconcile(self.reader, self.pause)(ref)
