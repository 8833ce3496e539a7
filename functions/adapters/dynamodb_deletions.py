"""Tombstones, and the items behind them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import batched
from typing import Any, Final

from functions.adapters.dynamodb import KEYS_A_DELETE, NOT_THERE, DynamoDBTable, Refused, Span
from functions.adapters.dynamodb_runs import is_tenant_deleted
from functions.core import deletions, items, keys
from functions.core.deletions import Deletion
from functions.core.errors import Unavailable
from functions.core.items import Item
from functions.core.keys import ItemKey, RunRef
from functions.core.schema import SCHEMA_VERSION, VERSION

type DeleteSpread = Callable[
    [Callable[[Sequence[ItemKey]], int | Unavailable], Iterable[Sequence[ItemKey]]],
    Iterable[int | Unavailable],
]
"""How independent batches are spread: `map` one after the other, an executor's `map` at once."""

_OF_THE_RUN: Final = (
    "start", "end", "status", "pipeline", *items.STALE_MARK,
    keys.BY_TENANT_PARTITION, keys.BY_TENANT_SORT,
)  # fmt: skip
"""All that RUN ever says of the run: nothing of it is kept, and no index lists it any more."""

_SPARED: Final = {keys.RUN, keys.LAKE}
_ITEMS_A_PART: Final = 1_000
_ALL: Final = ("A", "~")
"""Every sort key of a run begins with a capital letter."""


class DynamoDBTombstones:
    """core.deletions.Tombstones on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def bury(
        self, ref: RunRef, requested_at: int, expires_at: int, at_rest_before: int | None = None
    ) -> Deletion | None:
        """No read goes before: what a refused write returns says why it was refused."""
        unfinished = keys.unfinished_deletion(ref, requested_at)
        attributes = {
            items.DELETED: requested_at,
            keys.EXPIRES: expires_at,
            keys.OPEN_RUNS_PARTITION: unfinished.partition,
            keys.OPEN_RUNS_SORT: unfinished.sort,
            deletions.RECEIPT: {"turn": 0},
        }
        expression = f"{_set(attributes)} REMOVE {', '.join(f'#{name}' for name in _OF_THE_RUN)}"
        lives = (
            f"attribute_exists({keys.PARTITION}) AND attribute_not_exists(#{items.DELETED})"
            f" AND (attribute_not_exists(#{VERSION}) OR #{VERSION} <= :{VERSION})"
        )
        values = _values(attributes) | {f":{VERSION}": SCHEMA_VERSION}
        if at_rest_before is not None:
            # What is still recorded has neither, and what has ended has no mark.
            lives += f" AND (#end.#at < :rest OR #{items.STALE} < :rest)"
            values[":rest"] = at_rest_before
        try:
            item = self._table.update(keys.item_of_run(ref, keys.RUN), expression, lives, values)
        except Refused as refused:
            if refused.item is None:
                return self._bury_what_is_gone(ref, attributes)
            return deletions.parse_deletion(refused.item)
        return deletions.parse_deletion(item)

    def _bury_what_is_gone(self, ref: RunRef, attributes: Item) -> Deletion | None:
        """None where the lake has no files of it either."""
        if self._table.get(keys.item_of_run(ref, keys.LAKE)) is None:
            return None
        attributes = attributes | {VERSION: SCHEMA_VERSION}
        key = keys.item_of_run(ref, keys.RUN)
        try:
            item = self._table.update(key, _set(attributes), NOT_THERE, _values(attributes))
        except Refused as refused:
            item = refused.item or {}
        if (deletion := deletions.parse_deletion(item)) is None:
            raise Unavailable(f"{ref.run_id} was opened meanwhile")
        return deletion

    def load_deletion(self, ref: RunRef) -> Deletion | None:
        item = self._table.get(keys.item_of_run(ref, keys.RUN))
        return None if item is None else deletions.parse_deletion(item)

    def is_gone_with_tenant(self, ref: RunRef) -> bool:
        run = self._table.get(keys.item_of_run(ref, keys.RUN))
        return run is None and is_tenant_deleted(self._table, ref.tenant_id)

    def note(self, before: Deletion, after: Deletion) -> bool:
        """On condition of the turn, so that an answer that was lost adds nothing twice."""
        expression = f"SET #{deletions.RECEIPT} = :receipt"
        if after.finished_at is not None:
            expression += f" REMOVE #{keys.OPEN_RUNS_PARTITION}, #{keys.OPEN_RUNS_SORT}"
        values = {":receipt": deletions.receipt_map(after), ":turn": before.turn}
        key = keys.item_of_run(before.ref, keys.RUN)
        try:
            self._table.update(key, expression, f"#{deletions.RECEIPT}.#turn = :turn", values)
        except Refused as refused:
            stands = None if refused.item is None else deletions.parse_deletion(refused.item)
            return stands == after
        return True


def _set(attributes: Item) -> str:
    return f"SET {', '.join(f'#{name} = :{name}' for name in attributes)}"


def _values(attributes: Item) -> dict[str, Any]:
    return {f":{name}": value for name, value in attributes.items()}


class DynamoDBItemsOfRun:
    """core.deletions.ItemsOfRun on the table."""

    def __init__(self, table: DynamoDBTable, spread: DeleteSpread = map) -> None:
        self._table = table
        self._spread = spread

    def take_items(self, deletion: Deletion) -> Iterator[int]:
        for bucket in range(deletion.buckets):
            yield from self._take(keys.run_partition(deletion.ref, bucket))

    def _take(self, partition: str) -> Iterator[int]:
        span = Span(partition, *_ALL)
        only_keys = (keys.PARTITION, keys.SORT)
        for listed in self._table.pages(span, limit=_ITEMS_A_PART, attributes=only_keys):
            found = [ItemKey(item[keys.PARTITION], item[keys.SORT]) for item in listed]
            yield from self._delete([key for key in found if key.sort not in _SPARED])

    def _delete(self, found: Sequence[ItemKey]) -> Iterator[int]:
        """How many are gone; then, if some are not, the failure."""
        answers = list(self._spread(self._attempt, batched(found, KEYS_A_DELETE, strict=False)))
        if gone := sum(answer for answer in answers if isinstance(answer, int)):
            yield gone
        for answer in answers:
            if isinstance(answer, Unavailable):
                raise answer

    def _attempt(self, batch: Sequence[ItemKey]) -> int | Unavailable:
        try:
            self._table.delete_many(batch)
        except Unavailable as failure:
            return failure
        return len(batch)
