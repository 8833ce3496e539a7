"""What the lake reads of a run, and the item LAKE, which says where its files are."""

from collections.abc import Iterable, Iterator
from itertools import batched

from functions.adapters.dynamodb import KEYS_A_DELETE, NOT_THERE, DynamoDBTable, Refused
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.core import keys
from functions.core.items import Item, key_attributes
from functions.core.keys import RunRef
from functions.core.lake_ports import LakeNote
from functions.core.model import Run, StepRow


class DynamoDBLakeNotes:
    """core.lake_ports.LakeNotes on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def load_note(self, ref: RunRef) -> LakeNote:
        item = self._table.get(keys.item_of_run(ref, keys.LAKE))
        if item is None:
            return LakeNote()
        numbers = (int(item[name]) for name in ("turn", keys.EXPIRES, "calls"))
        return LakeNote(tuple(item["days"]), *numbers)

    def put_note(self, ref: RunRef, before: LakeNote, after: LakeNote) -> bool:
        item: Item = {
            **key_attributes(keys.item_of_run(ref, keys.LAKE)),
            "days": list(after.days),
            "turn": after.turn,
            "calls": after.calls,
            keys.EXPIRES: after.expires_at,
        }
        try:
            if before.turn:
                self._table.put(item, "#turn = :turn", {":turn": before.turn})
            else:
                self._table.put(item, NOT_THERE)
        except Refused:
            return False
        return True

    def forget(self, refs: Iterable[RunRef]) -> None:
        once = dict.fromkeys(refs)  # DynamoDB takes no key twice in a request
        for part in batched(once, KEYS_A_DELETE, strict=False):
            self._table.delete_many([keys.item_of_run(ref, keys.LAKE) for ref in part])


class DynamoDBLakeSource(DynamoDBLakeNotes):
    """core.lake_ports.LakeSource on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        super().__init__(table)
        self._reader = DynamoDBRunReader(table)
        self._totals = DynamoDBTotalsStore(table)

    def load_run(self, ref: RunRef) -> Run | None:
        return self._reader.load_run(ref)

    def summarized_calls(self, run: Run) -> int | None:
        item = self._table.get(keys.item_of_run(run.ref, keys.SUMMARY), ("agents_total",))
        return None if item is None else int(item["agents_total"])

    def steps_of_run(self, run: Run) -> Iterable[StepRow]:
        return self._totals.steps_of_run(run)

    def calls_of_run(self, run: Run) -> Iterator[Item]:
        return self._reader.calls_of_run(run, after="")
