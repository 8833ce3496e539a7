"""What the api reads of runs: the tenant's index, the items of a run, and its calls in order."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from functions.adapters.dynamodb import DynamoDBTable, Span
from functions.adapters.dynamodb_runs import load_run
from functions.core import counts, items, keys
from functions.core.api_ports import IndexedRun, IndexPage, RunQuery, RunRecord
from functions.core.items import Item
from functions.core.keys import RunRef, Whole
from functions.core.model import Run, Totals

_LISTED: Final[tuple[Whole, ...]] = (keys.RUN, keys.TOTALS, keys.PREVIEW, keys.SUMMARY)
_READ_AHEAD: Final = 8_000
"""Calls that the buckets of a run hold in memory together while they are merged."""


class DynamoDBRunReader:
    """core.api_ports.RunReader on the table."""

    def __init__(self, table: DynamoDBTable) -> None:
        self._table = table

    def load_run(self, ref: RunRef) -> Run | None:
        return load_run(self._table, ref)

    def page_of_runs(self, query: RunQuery, after: tuple[int, str] | None, limit: int) -> IndexPage:
        partition, first, last = keys.runs_between(query.tenant_id, query.since, query.until)
        page = self._table.page(
            Span(partition, first, last, index=keys.BY_TENANT, newest_first=True),
            after=None if after is None else _index_key(query.tenant_id, *after),
            limit=limit,
            where=query.where,
        )
        runs = [_indexed(query.tenant_id, item) for item in page.items]
        go_on = page.last and keys.parse_listed_run(page.last[keys.BY_TENANT_SORT])
        return IndexPage(runs, go_on or None)

    def records_of(self, refs: Sequence[RunRef]) -> dict[RunRef, RunRecord]:
        wanted = [keys.item_of_run(ref, which) for ref in refs for which in _LISTED]
        found = self._table.get_many(wanted, consistent=False)
        return {
            ref: _record({which: found.get(keys.item_of_run(ref, which)) for which in _LISTED})
            for ref in refs
        }

    def record_of(self, ref: RunRef) -> RunRecord:
        wanted = {which: keys.item_of_run(ref, which) for which in (*_LISTED, keys.RESULT)}
        found = self._table.get_many(list(wanted.values()), consistent=True)
        return _record({which: found.get(key) for which, key in wanted.items()})

    def newest_logs(self, ref: RunRef, most: int) -> Sequence[Item]:
        first, last = keys.beginning_with(keys.LOG_PREFIX)
        span = Span(keys.run_partition(ref), first, last, newest_first=True)
        return self._table.page(span, limit=most).items

    def calls_of_run(self, run: Run, after: str) -> Iterator[Item]:
        buckets = (self._calls_of_bucket(run, bucket, after) for bucket in range(run.buckets))
        return heapq.merge(*buckets, key=lambda item: item[keys.SORT])

    def load_call(self, run: Run, step_id: str) -> Item | None:
        return self._table.get(keys.step_item(run.ref, run.buckets, step_id))

    def _calls_of_bucket(self, run: Run, bucket: int, after: str) -> Iterator[Item]:
        return self._table.query(
            keys.run_partition(run.ref, bucket),
            keys.STEP_PREFIX,
            after=keys.STEP_PREFIX + after if after else "",
            limit=None if run.buckets == 1 else max(50, _READ_AHEAD // run.buckets),
        )


def _record(found: Mapping[Whole, Item | None]) -> RunRecord:
    run, totals, preview, summary = (found[which] for which in _LISTED)
    return RunRecord(
        run=None if run is None else items.parse_run(run),
        totals=Totals() if totals is None else counts.parse_totals(totals),
        preview=() if preview is None else counts.parse_preview_entries(preview),
        summary=None if summary is None else counts.parse_summary(summary),
        result=found.get(keys.RESULT),
    )


def _indexed(tenant_id: str, item: Item) -> IndexedRun:
    at, run_id = keys.parse_listed_run(item[keys.BY_TENANT_SORT])
    return IndexedRun(RunRef(tenant_id, run_id), at, item["pipeline"], item["status"])


def _index_key(tenant_id: str, at: int, run_id: str) -> dict[str, str]:
    ref = RunRef(tenant_id, run_id)
    listed = keys.runs_of_tenant(ref, at)
    return {
        **items.key_attributes(keys.item_of_run(ref, keys.RUN)),
        keys.BY_TENANT_PARTITION: listed.partition,
        keys.BY_TENANT_SORT: listed.sort,
    }
