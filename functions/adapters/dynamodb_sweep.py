"""What the sweep reads of open runs, and the marks and the place that it writes."""

from collections.abc import Iterator, Mapping, Sequence

from functions.adapters.dynamodb import DynamoDBTable, Refused, Span
from functions.adapters.dynamodb_runs import LIVE, load_run
from functions.core import counts, items, keys
from functions.core.errors import Unavailable
from functions.core.items import Item, key_attributes
from functions.core.keys import RunRef
from functions.core.model import LiveTotals, Run, RunStatus, Stale
from functions.core.ports import Place, UnfinishedDeletion


class DynamoDBOpenRuns:
    """core.ports.OpenRuns on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def page_of_open_runs(self, place: Place, limit: int) -> tuple[list[RunRef], Place]:
        page = self._table.page(
            Span(*keys.all_open_runs(place.shard), index=keys.OPEN_RUNS),
            after=None if place.after is None else _index_key(place.after),
            limit=limit,
        )
        refs = [_ref(item) for item in page.items]
        if page.last is None:
            return refs, place._replace(shard=place.shard + 1, after=None)
        return refs, place._replace(after=_ref(page.last))

    def load_run(self, ref: RunRef) -> Run | None:
        return load_run(self._table, ref)

    def load_runs(self, refs: Sequence[RunRef]) -> dict[RunRef, Run | Unavailable]:
        wanted = {keys.item_of_run(ref, keys.RUN): ref for ref in refs}
        found = self._table.get_many(list(wanted), consistent=False)
        return {ref: _parsed(found[key]) for key, ref in wanted.items() if key in found}

    def newest_event_at(self, run: Run) -> int:
        return max(self._times(run))

    def _times(self, run: Run) -> Iterator[int]:
        yield run.start.order.at
        whole = keys.run_partition(run.ref)
        for item in self._newest(whole, keys.LOG_PREFIX, "at"):
            yield int(item["at"])
        for bucket in range(run.buckets):
            partition = keys.run_partition(run.ref, bucket)
            for item in self._newest(partition, keys.STEP_PREFIX, "ended_at"):
                yield int(item["ended_at"])

    def _newest(self, partition: str, prefix: str, attribute: str) -> Sequence[Item]:
        span = Span(partition, *keys.beginning_with(prefix), newest_first=True)
        return self._table.page(span, limit=1, attributes=(attribute,)).items

    def read_totals(self, run: Run) -> LiveTotals:
        item = self._table.get(keys.item_of_run(run.ref, keys.TOTALS))
        return counts.parse_live_totals(item or {})

    def mark_stale(self, run: Run, stale: Stale) -> bool:
        attributes = items.stale_attributes(stale)
        expression = "SET " + ", ".join(f"#{name} = :{name}" for name in attributes)
        if not stale.untold:
            expression += f" REMOVE #{items.STALE_UNTOLD}"
        values = {f":{name}": value for name, value in attributes.items()}
        return self._settle(run, expression, values, stale)

    def take_mark_off(self, run: Run) -> bool:
        names = ", ".join(f"#{name}" for name in items.STALE_MARK)
        expression = f"SET #status = :status REMOVE {names}"
        return self._settle(run, expression, {":status": RunStatus.RUNNING.value}, None)

    def _settle(self, run: Run, expression: str, values: Item, wanted: Stale | None) -> bool:
        """A mark only ever takes the place of the one that the sweep saw; a real end's, never."""
        condition = f"{LIVE} AND attribute_not_exists(#end) AND "
        if run.stale is None:
            condition += f"attribute_not_exists(#{items.STALE})"
        else:
            condition += f"#{items.STALE} = :since AND #{items.STALE_COUNTED} = :counted"
            values = values | {":since": run.stale.since, ":counted": run.stale.counted}
        try:
            self._table.update(keys.item_of_run(run.ref, keys.RUN), expression, condition, values)
        except Refused as refused:
            if refused.item is None or items.DELETED in refused.item or "end" in refused.item:
                return False
            # Equal when the answer to this very write was lost, and it was sent again.
            return items.parse_run(refused.item).stale == wanted
        return True

    def unfinished_before(self, shard: int, until: int) -> Iterator[UnfinishedDeletion]:
        """As core.ports.UnfinishedDeletions."""
        span = Span(*keys.deletions_before(shard, until), index=keys.OPEN_RUNS)
        for listed in self._table.pages(span):
            for item in listed:
                yield UnfinishedDeletion(*keys.parse_unfinished_deletion(item[keys.OPEN_RUNS_SORT]))

    def load_place(self) -> Place:
        item = self._table.get(keys.sweep_item()) or {}
        after = item.get("after")
        return Place(
            int(item.get("shard", 0)),
            _ref({keys.PARTITION: after}) if after else None,
            int(item.get("began_at", 0)),
            int(item.get("last_at", 0)),
        )

    def save_place(self, place: Place) -> None:
        attributes = place._asdict()
        attributes["after"] = keys.run_partition(place.after) if place.after else ""
        expression = "SET " + ", ".join(f"#{name} = :{name}" for name in attributes)
        values = {f":{name}": value for name, value in attributes.items()}
        self._table.update(keys.sweep_item(), expression, "", values)


def _parsed(item: Item) -> Run | Unavailable:
    try:
        return items.parse_run(item)
    except Unavailable as newer:
        return newer


def _ref(key: Mapping[str, str]) -> RunRef:
    """The run that an entry of the index is about: the table's own key is part of it."""
    return keys.parse_run_partition(key[keys.PARTITION])[0]


def _index_key(ref: RunRef) -> dict[str, str]:
    listed = keys.open_runs(ref)
    return {
        **key_attributes(keys.item_of_run(ref, keys.RUN)),
        keys.OPEN_RUNS_PARTITION: listed.partition,
        keys.OPEN_RUNS_SORT: listed.sort,
    }
