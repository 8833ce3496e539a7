"""The items that summarize writes: TOTALS, PREVIEW, SUMMARY."""

from collections.abc import Iterator, Sequence

from functions.adapters.dynamodb import NOT_THERE, DynamoDBTable, Refused
from functions.adapters.dynamodb_runs import load_run
from functions.core import caps, counts, items, keys
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.model import LiveTotals, Preview, Run, StepRow, Summary, Totals


class DynamoDBTotalsStore:
    """core.ports.TotalsStore on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def load_run(self, ref: RunRef) -> Run | None:
        return load_run(self._table, ref)

    def add_to_totals(
        self, run: Run, bucket: int, sums: Totals, first: bytes, last: bytes
    ) -> tuple[bool, LiveTotals]:
        mark = f"{counts.MARK_PREFIX}{bucket}"
        added = {name: value for name, value in sums.as_attributes().items() if value}
        expression = (
            f"SET #{mark} = :last, #{keys.EXPIRES} = :expires"
            f" ADD {', '.join(f'#{name} :{name}' for name in added)}"
        )
        values: Item = {f":{name}": value for name, value in added.items()}
        values |= {":first": first, ":last": last, ":expires": run.expires_at}
        key = keys.item_of_run(run.ref, keys.TOTALS)
        try:
            item = self._table.update(key, expression, _not_yet(mark), values)
        except Refused as refused:
            return False, counts.parse_live_totals(refused.item or {})
        return True, counts.parse_live_totals(item)

    def extend_preview(
        self, run: Run, bucket: int, steps: Sequence[StepRow], first: bytes, last: bytes
    ) -> tuple[bool, Preview]:
        mark = f"{counts.MARK_PREFIX}{bucket}"
        shown = f"#{counts.PREVIEW_STEPS}"
        expression = (
            f"SET {shown} = list_append(if_not_exists({shown}, :none), :steps),"
            f" #{mark} = :last, #{keys.EXPIRES} = :expires"
        )
        condition = (
            f"({_not_yet(mark)}) AND (attribute_not_exists({shown}) OR size({shown}) <= :room)"
        )
        values = {
            ":none": [],
            ":steps": [counts.preview_entry(step) for step in steps],
            ":room": caps.PREVIEW_ENTRIES - len(steps),
            ":first": first,
            ":last": last,
            ":expires": run.expires_at,
        }
        key = keys.item_of_run(run.ref, keys.PREVIEW)
        try:
            item = self._table.update(key, expression, condition, values)
        except Refused as refused:
            return False, counts.parse_preview(refused.item or {})
        return True, counts.parse_preview(item)

    def mark_preview_full(self, run: Run) -> None:
        key = keys.item_of_run(run.ref, keys.TOTALS)
        self._table.update(key, f"SET #{counts.PREVIEW_FULL} = :true", "", {":true": True})

    def mark_ended(self, run: Run) -> LiveTotals:
        expression = f"SET #{counts.ENDED} = :true, #{keys.EXPIRES} = :expires"
        values = {":true": True, ":expires": run.expires_at}
        key = keys.item_of_run(run.ref, keys.TOTALS)
        return counts.parse_live_totals(self._table.update(key, expression, "", values))

    def read_totals(self, run: Run) -> LiveTotals:
        return counts.parse_live_totals(
            self._table.get(keys.item_of_run(run.ref, keys.TOTALS)) or {}
        )

    def steps_of_run(self, run: Run) -> Iterator[StepRow]:
        for bucket in range(run.buckets):
            partition = keys.run_partition(run.ref, bucket)
            for item in self._table.query(partition, keys.STEP_PREFIX, items.COUNTED_ATTRIBUTES):
                yield items.step_row(item)

    def covered_total(self, run: Run) -> int | None:
        item = self._table.get(keys.item_of_run(run.ref, keys.SUMMARY), ("at_total",))
        return None if item is None else int(item["at_total"])

    def put_summary(self, run: Run, summary: Summary) -> bool:
        condition = (
            f"{NOT_THERE} OR #agents_total < :steps OR (#agents_total = :steps"
            " AND (#at_total < :at_total OR #fold_version < :fold_version))"
        )
        values = {
            ":steps": summary.totals.agents_total,
            ":at_total": summary.at_total,
            ":fold_version": summary.fold_version,
        }
        try:
            self._table.put(counts.summary_item(run, summary), condition, values)
        except Refused:
            return False
        return True


def _not_yet(mark: str) -> str:
    """Each record once: what the bucket's mark has reached was counted already."""
    return f"attribute_not_exists(#{mark}) OR #{mark} < :first"
