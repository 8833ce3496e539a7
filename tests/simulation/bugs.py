"""Bugs that somebody might write, as switches: a proof that finds none of them proves nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest import mock

from functions.adapters import dynamodb_totals
from functions.adapters.dynamodb import DynamoDBTable, Refused
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.s3 import S3ObjectStore
from functions.core import caps, counts, items, keys
from functions.core.changes import StepStored
from functions.core.errors import Unavailable
from functions.core.model import Outcome
from functions.core.phases import summarize_steps
from functions.ingest import handler as ingest_handler
from functions.ingest.record import RecordMessage
from functions.summarize import handler as summarize_handler
from functions.summarize import tally
from functions.summarize.recount import Recount, Recounted
from functions.summarize.tally import Tally
from tests.simulation import sources

type Planted = Callable[[], AbstractContextManager[object]]

_ALWAYS: Final = f"attribute_exists({keys.PARTITION}) OR attribute_not_exists({keys.PARTITION})"


def _patched(owner: object, name: str, bug: object) -> Planted:
    return lambda: mock.patch.object(owner, name, bug)


# -- the watermark ------------------------------------------------------------------------------


def _unconditional_add(mark: str) -> str:
    return f"attribute_not_exists(#{mark}) OR #{mark} < :first OR #{mark} >= :first"


def _mark_not_above(mark: str) -> str:
    return f"attribute_not_exists(#{mark}) OR #{mark} <= :first"


def _no_records_above(_: bytes, steps: dict[bytes, StepStored]) -> dict[bytes, StepStored]:
    """After a refusal all of the batch is taken for counted."""
    return {}


# -- the preview --------------------------------------------------------------------------------

_add_to_totals = DynamoDBTotalsStore.add_to_totals


def _counters_end_with_the_preview(self: Any, run: Any, bucket: int, *rest: Any) -> Any:
    """The preview's condition on the update that carries the counters."""
    live = self.read_totals(run)
    if live.totals.agents_total >= caps.PREVIEW_ENTRIES:
        return True, live
    return _add_to_totals(self, run, bucket, *rest)


def _full_by_the_totals(self: Any, run: Any, bucket: int, steps: Any) -> None:
    """Another bucket's batch may be between its two writes."""
    if self.totals.read_totals(run).totals.agents_total >= caps.PREVIEW_ENTRIES:
        self.totals.mark_preview_full(run)
    else:
        _extend_preview(self, run, bucket, steps)


_extend_preview = Tally._extend_preview


def _preview_without_a_mark(self: Any, run: Any, bucket: int, steps: Any, *marks: Any) -> Any:
    key = keys.item_of_run(run.ref, keys.PREVIEW)
    shown = f"#{counts.PREVIEW_STEPS}"
    item = self._table.update(
        key,
        f"SET {shown} = list_append(if_not_exists({shown}, :none), :steps),"
        f" #{keys.EXPIRES} = :expires",
        "",
        {
            ":none": [],
            ":steps": [counts.preview_entry(step) for step in steps],
            ":expires": run.expires_at,
        },
    )
    return True, counts.parse_preview(item)


# -- the summary --------------------------------------------------------------------------------


def _put_any_summary(self: Any, run: Any, summary: Any) -> bool:
    self._table.put(counts.summary_item(run, summary), _ALWAYS)
    return True


def _recount_in_another_order(order: str) -> Callable[..., Recounted | None]:
    def recount(self: Recount, ref: Any, agents_total: int | None) -> Recounted | None:
        run = self.totals.load_run(ref)
        if run is None:
            return None
        covered = self.totals.covered_total(run)
        if covered is not None and order == "skipped when there is one":
            return None
        if agents_total is not None and covered is not None and agents_total <= covered:
            return None
        live = self.totals.read_totals(run)
        if run.end and order not in {"marked afterwards", "never marked"}:
            live = self.totals.mark_ended(run)
        steps = sorted(self.totals.steps_of_run(run), key=lambda step: step.step_id)
        if order == "totals read last":
            live = self.totals.read_totals(run)
        summary = summarize_steps(steps, at_total=live.totals.agents_total)
        self.totals.put_summary(run, summary)
        if run.end and order == "marked afterwards":
            self.totals.mark_ended(run)
        return Recounted(len(steps), 0)

    return recount


_count = Tally._count


def _late_steps_ask_only_when_new(self: Any, ref: Any, changes: Any, tallied: Any) -> None:
    """Nothing is asked for by a batch that another invocation, now dead, had counted."""
    before = len(tallied.counted)
    with mock.patch.object(self.recounts, "request_recount") as asked:
        _count(self, ref, changes, tallied)
    if len(tallied.counted) > before:
        for call in asked.call_args_list:
            self.recounts.request_recount(*call.args)


def _never_asks_again(self: Any, ref: Any, changes: Any, tallied: Any) -> None:
    with mock.patch.object(self.recounts, "request_recount"):
        _count(self, ref, changes, tallied)


# -- ingest -------------------------------------------------------------------------------------


@contextmanager
def _pointer_before_object() -> Iterator[None]:
    put_object, append = S3ObjectStore.put_object, RecordMessage._append
    waiting: list[tuple[Any, ...]] = []

    def later(self: Any, *given: Any) -> None:
        waiting.append((self, *given))

    def append_first(self: Any, run: Any, recorded: Any) -> Any:
        result = append(self, run, recorded)
        while waiting:
            put_object(*waiting.pop())
        return result

    with (
        mock.patch.object(S3ObjectStore, "put_object", later),
        mock.patch.object(RecordMessage, "_append", append_first),
    ):
        yield


def _object_is_optional(self: Any, key: str, content: bytes, buckets: int) -> None:
    try:
        _put_object(self, key, content, buckets)
    except Unavailable:
        return


_put_object = S3ObjectStore.put_object


def _settled_by_arrival(of: str) -> Callable[..., None]:
    """Whichever start or end comes last stands."""
    settle = DynamoDBRunStore._settle

    def bug(self: Any, run: Any, attributes: Any, condition: str, order: Any, **more: Any) -> None:
        if of in attributes:
            condition, order = _ALWAYS, {}
        settle(self, run, attributes, condition, order, **more)

    return bug


def _last_result_stands(self: Any, run: Any, end: Any) -> None:
    self._table.put(items.result_item(run, end), _ALWAYS)


def _overwrites(self: Any, item: Any) -> Any:
    """A step is put whatever stands there."""
    self._table.put(item, _ALWAYS)
    return Outcome.STORED


def _nothing_failed(process: Callable[..., Mapping[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The answer of a batch is swallowed, and Lambda deletes or passes all of it."""

    def bug(*given: Any) -> dict[str, Any]:
        process(*given)
        return {"batchItemFailures": []}

    return bug


def _without_its_tenant(run: Any, bucket: int = 0) -> str:
    key = f"PIPELINERUN#acme#{run.run_id}"
    return f"{key}#{bucket}" if bucket else key


_update = DynamoDBTable.update


def _refused_is_applied(self: Any, key: Any, expression: str, condition: str, values: Any) -> Any:
    """A refused update is taken for one that was applied a moment ago, by oneself."""
    try:
        return _update(self, key, expression, condition, values)
    except Refused as refused:
        return refused.item or {}


def _all_pass(record: dict[str, Any]) -> bool:
    """The event source's filter lets summarize's own writes through."""
    return bool(record["eventName"] != "REMOVE")


BUGS: Final[Mapping[str, Planted]] = {
    "unconditional ADD": _patched(dynamodb_totals, "_not_yet", _unconditional_add),
    "watermark >= instead of >": _patched(dynamodb_totals, "_not_yet", _mark_not_above),
    "refused batch taken for counted": _patched(tally, "_above", _no_records_above),
    "refused update taken for applied": _patched(DynamoDBTable, "update", _refused_is_applied),
    "preview condition on the counter update": _patched(
        DynamoDBTotalsStore, "add_to_totals", _counters_end_with_the_preview
    ),
    "preview full judged by the totals": _patched(Tally, "_extend_preview", _full_by_the_totals),
    "preview without a mark": _patched(
        DynamoDBTotalsStore, "extend_preview", _preview_without_a_mark
    ),
    "summary without its guard": _patched(DynamoDBTotalsStore, "put_summary", _put_any_summary),
    "ended mark after the recount": _patched(
        Recount, "__call__", _recount_in_another_order("marked afterwards")
    ),
    "no ended mark in the recount": _patched(
        Recount, "__call__", _recount_in_another_order("never marked")
    ),
    "recount skipped when any summary exists": _patched(
        Recount, "__call__", _recount_in_another_order("skipped when there is one")
    ),
    "total read after the steps": _patched(
        Recount, "__call__", _recount_in_another_order("totals read last")
    ),
    "late steps ask only when new": _patched(Tally, "_count", _late_steps_ask_only_when_new),
    "late steps never ask": _patched(Tally, "_count", _never_asks_again),
    "pointer before object": _pointer_before_object,
    "object optional": _patched(S3ObjectStore, "put_object", _object_is_optional),
    "last end stands": _patched(DynamoDBRunStore, "_settle", _settled_by_arrival("end")),
    "last start stands": _patched(DynamoDBRunStore, "_settle", _settled_by_arrival("start")),
    "last result stands": _patched(DynamoDBRunStore, "put_result", _last_result_stands),
    "step overwritten": _patched(DynamoDBRunStore, "_append", _overwrites),
    "batch response of ingest swallowed": _patched(
        ingest_handler, "process", _nothing_failed(ingest_handler.process)
    ),
    "batch response of summarize swallowed": _patched(
        summarize_handler, "process", _nothing_failed(summarize_handler.process)
    ),
    "resumes behind the lowest failure": lambda: mock.patch.object(
        summarize_handler, "min", max, create=True
    ),
    "run key without its tenant": _patched(keys, "run_partition", _without_its_tenant),
    "filter lets own writes through": _patched(sources, "passes_filter", _all_pass),
}
"""By name. `python -m tests.simulation --bugs` says which seed finds which."""

FOCUS: Final[Mapping[str, Mapping[str, Any]]] = {
    # The end of the run never reaches summarize, so that the recount's own mark is the only one.
    "ended mark after the recount": {
        "poison_records": 1,
        "poison_ends": True,
        "faults": 0,
        "badness": 0.0,
        "splits": 0,
        "page_bytes": 1,
    },
}
"""Of the bugs that few schedules show: what to fix in a plan."""
