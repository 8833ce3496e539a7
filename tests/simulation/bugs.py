"""Bugs that somebody might write, as switches: a proof that finds none of them proves nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest import mock

from functions.adapters import dynamodb_runs, dynamodb_totals, s3_versions
from functions.adapters.dynamodb import DynamoDBTable, Refused
from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.dynamodb_sweep import DynamoDBOpenRuns
from functions.adapters.dynamodb_totals import DynamoDBTotalsStore
from functions.adapters.eventbridge import EventBridgeBus
from functions.adapters.s3 import S3ObjectStore
from functions.core import caps, counts, items, keys
from functions.core.changes import StepStored
from functions.core.errors import Unavailable
from functions.core.model import Outcome
from functions.core.phases import summarize_steps
from functions.erase.erase import Erase
from functions.ingest import handler as ingest_handler
from functions.ingest.record import RecordMessage
from functions.summarize import handler as summarize_handler
from functions.summarize import tally
from functions.summarize.recount import Recount, Recounted
from functions.summarize.tally import Tally
from functions.sweep.sweep import Sweep
from local import dead_letters, dead_letters_redrive
from tests.simulation import lake_bugs, world

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
        stands = self.totals.put_summary(run, summary)
        if run.end and order == "marked afterwards":
            self.totals.mark_ended(run)
        return Recounted(len(steps), 0, run, summary, stands, False, 0, 0, frozenset())

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


# -- moving dead letters back ---------------------------------------------------------------------

_as_it_was = dead_letters_redrive._as_it_was


def _forgets_the_body(message: Any) -> Any:
    """As if somebody sent what the list shows."""
    return _as_it_was(message) | {"MessageBody": message["Body"][:64]}


def _deleted_before_it_is_sent(self: Any, queue: Any, ids: Any, told: Any) -> Any:
    sqs = self.stage.sqs
    with dead_letters.browsing(sqs, queue.dead_letters_url, self.within_s) as browse:
        for message in browse:
            if message["MessageId"] in ids:
                browse.delete(message)
                sqs.send_message(QueueUrl=queue.url, **_as_it_was(message))


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


# -- the sweep ----------------------------------------------------------------------------------

_settle_mark = DynamoDBOpenRuns._settle
_mark_stale = DynamoDBOpenRuns.mark_stale
_sweep_tells = Sweep._tell
_sweep_marks = Sweep._mark


def _marked_whatever_stands_there(self: Any, run: Any, expression: str, *given: Any) -> bool:
    def update(key: Any, expression: str, condition: str, values: Any) -> Any:
        used = {n: v for n, v in values.items() if n not in {":since", ":counted"}}
        return _update(self._table, key, expression, "", used)

    with mock.patch.object(self._table, "update", update):
        return _settle_mark(self, run, expression, *given)


def _stale_sets_ended(self: Any, run: Any, stale: Any) -> bool:
    DynamoDBTotalsStore(self._table).mark_ended(run)
    return _mark_stale(self, run, stale)


def _marked_before_it_is_told(self: Any, verdicts: Any, swept: Any) -> Any:
    for verdict in verdicts:
        self._attempt(verdict, swept, _sweep_marks.__get__(self))
    return _sweep_tells(self, verdicts, swept)


def _told_or_not(self: Any, events: Any) -> list[Any]:
    _publish(self, events)
    return []


_publish = EventBridgeBus.publish


# -- deletion -----------------------------------------------------------------------------------

_looked = Erase._looked
_load_run = DynamoDBRunStore.load_run


def _first_look_is_the_last(self: Any, *given: Any, **_: Any) -> Any:
    return _looked(self, *given, clean=True)


def _reads_past_the_tombstone(self: Any, ref: Any) -> Any:
    run = _load_run(self, ref)
    return run and replace(run, deleted=False)


class _WithoutTombstones:
    """Totals that know no deleted run. Handed over, not patched in: another task may go on
    meanwhile, and would unpatch in another order."""

    def __init__(self, totals: Any) -> None:
        self._totals = totals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._totals, name)

    def load_run(self, ref: Any) -> Any:
        run = self._totals.load_run(ref)
        return run and replace(run, deleted=False)


def _recounts_the_deleted(self: Any, ref: Any, *given: Any, **more: Any) -> Any:
    return _recount(replace(self, totals=_WithoutTombstones(self.totals)), ref, *given, **more)


_recount = Recount.__call__


def _without_its_slash(run: Any) -> str:
    return f"{keys.RUN_OBJECTS}{run.tenant_id}/{run.run_id}"


def _hides_objects(self: Any, prefix: str) -> Iterator[tuple[int, int]]:
    """Deleted without their versions, objects get a marker each, and stay below it."""
    found = self._client.list_object_versions(Bucket=self._bucket, Prefix=prefix)
    hidden = {each["Key"] for each in found["DeleteMarkers"]}
    shown = sorted({each["Key"] for each in found["Versions"]} - hidden)
    if shown:
        unwanted = {"Objects": [{"Key": key} for key in shown]}
        self._client.delete_objects(Bucket=self._bucket, Delete=unwanted)
        yield len(shown), len(shown)


def _counts_by_adding(self: Any, before: Any, after: Any) -> bool:
    """Whatever stands there, and twice when the answer was lost."""
    stands = self.load_deletion(before.ref)
    more = {
        name: getattr(stands, name) + getattr(after, name) - getattr(before, name)
        for name in ("items", "objects", "versions")
    }
    return _note(self, stands, replace(after, **more, turn=stands.turn + 1))


_note = DynamoDBTombstones.note


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
    "dead letter deleted before it is sent": _patched(
        dead_letters_redrive.Redrive, "move", _deleted_before_it_is_sent
    ),
    "dead letter moved back cut": _patched(dead_letters_redrive, "_as_it_was", _forgets_the_body),
    "stale mark whatever stands there": _patched(
        DynamoDBOpenRuns, "_settle", _marked_whatever_stands_there
    ),
    "stale run not recounted": _patched(Sweep, "_ask", lambda self, verdict, swept: None),
    "stale mark sets ended": _patched(DynamoDBOpenRuns, "mark_stale", _stale_sets_ended),
    "stale mark before it is told": _patched(Sweep, "_tell", _marked_before_it_is_told),
    "stale mark stays": _patched(Sweep, "_take_off", lambda self, verdict, swept: None),
    "events that were not taken are forgotten": _patched(EventBridgeBus, "publish", _told_or_not),
    "no second look": _patched(Erase, "_looked", _first_look_is_the_last),
    "ingest reads past the tombstone": _patched(
        DynamoDBRunStore, "load_run", _reads_past_the_tombstone
    ),
    "tombstone without a condition in ingest": _patched(
        dynamodb_runs, "LIVE", f"attribute_exists({keys.PARTITION})"
    ),
    "recount ignores the tombstone": _patched(Recount, "__call__", _recounts_the_deleted),
    "prefix of objects without its slash": _patched(
        s3_versions, "keys", mock.Mock(wraps=keys, objects_of_run=_without_its_slash)
    ),
    "objects hidden, not erased": _patched(s3_versions.S3Versions, "take_below", _hides_objects),
    "receipt added to, whatever stands": _patched(DynamoDBTombstones, "note", _counts_by_adding),
    "filter lets own writes through": _patched(world, "passes_filter", _all_pass),
    **lake_bugs.BUGS,
}
"""By name. `python -m tests.simulation --bugs` says which seed finds which."""

_FAULTS: Final = {
    "lake": False,
    "sweeps": 2,
    "redrives": 0,
    "deletes": 0,
    "faults": 12,
    "fault_rate": 0.1,
    "badness": 0.0,
}

_DELETIONS: Final = {
    "lake": False,
    "deletes": 2,
    "sweeps": 0,
    "redrives": 0,
    "reads": 0,
    "rebuild": False,
}

FOCUS: Final[Mapping[str, Mapping[str, Any]]] = {
    **lake_bugs.FOCUS,
    "stale mark whatever stands there": {"lake": True},
    # Only the one request that tells may fail, between the asking and the marking.
    "dead letter deleted before it is sent": {
        "lake": False,
        "redrives": 2,
        "deletes": 0,
        "sweeps": 0,
    },
    "stale mark before it is told": _FAULTS,
    "events that were not taken are forgotten": _FAULTS,
    "no second look": _DELETIONS,
    "recount ignores the tombstone": _DELETIONS,
    "receipt added to, whatever stands": _DELETIONS,
    # The end of the run never reaches summarize, so that the recount's own mark is the only one.
    "ended mark after the recount": {
        "lake": False,
        "poison_records": 1,
        "poison_ends": True,
        "faults": 0,
        "badness": 0.0,
        "splits": 0,
        "page_bytes": 1,
    },
}
"""Of the bugs that few schedules show: what to fix in a plan."""
