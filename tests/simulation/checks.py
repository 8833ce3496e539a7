"""What must hold after every request, and what at rest: DESIGN's invariants on a World."""

import gzip
from typing import Any, cast

from functions.adapters.attributes import from_attributes
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.api.runs import CallsWanted, RunsWanted
from functions.core import caps, counts, deletions, items, keys
from functions.core.errors import NotFound
from functions.core.keys import RunRef
from local.reconciling import Reconcile
from runtally import wire
from tests import build, invariants
from tests.memory_stage import DEAD_LETTERS, MemoryStage
from tests.simulation import swept
from tests.simulation.deleting import gone_for_good
from tests.simulation.lake_writing import files_are_noted, gone_from_lake
from tests.simulation.quiet import quiet
from tests.simulation.scenario import Sent
from tests.simulation.world import SWEPT_AFTER_S, World

_UNSURE = ("expires_at", "pointer", "stored_at", "at_total", "preview_full", items.STALE_COUNTED)
"""What may differ between equal histories: clocks, which message stored a line, bookkeeping."""


class AfterEach:
    """I3 (never falling), I4, I5, I6 and I8, on what a request has just written."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tenants = {sent.ref.tenant_id for sent in world.sent}
        self._counted: dict[str, int] = {}
        self._covered: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._seen = 0
        self._refs = {sent.ref for sent in world.sent}

    def __call__(self, label: str) -> None:
        if self._world.stage.lake and _may_touch_lake(label):
            files_are_noted(self._world.stage, self._refs, self._world.coverage)
        stream = self._world.stage.dynamodb.stream
        while self._seen < len(stream):
            record = stream[self._seen]["dynamodb"]
            self._seen += 1
            sort = record["Keys"]["SK"]["S"]
            if sort == keys.RUN:
                swept.marked_only(record)
                _stays_deleted(record)
            if sort != keys.SWEEP:
                self._check(record["Keys"]["PK"]["S"], sort)

    def _check(self, partition: str, sort: str) -> None:
        stage = self._world.stage
        attributes = stage.dynamodb.items.get((partition, sort))
        if attributes is None:
            return
        item = from_attributes(attributes)
        run, _ = keys.parse_run_partition(partition)
        assert run in self._refs, f"I8: {partition}"
        if items.DELETED in (stage.item(run, keys.RUN) or {}):
            return  # what comes and goes behind a tombstone
        if "pointer" in item:
            line = stage.line_behind(run, item["pointer"])
            assert wire.digest(line) == item["digest"], f"I6: {sort}"
        whole = keys.run_partition(run)
        if sort.startswith(keys.STEP_PREFIX):
            first = self._digests.setdefault((partition, sort), item["digest"])
            assert item["digest"] == first, f"I2: another body took the place of {sort}"
            self._steps[whole] = self._steps.get(whole, 0) + 1
        elif sort == keys.TOTALS and "agents_total" in item:
            total = int(item["agents_total"])
            assert total >= self._counted.get(whole, 0), "I3: the totals fell"
            assert total <= self._steps.get(whole, 0), "I3: more counted than stored"
            self._counted[whole] = total
        elif sort == keys.PREVIEW:
            shown = [entry[0] for entry in item[counts.PREVIEW_STEPS]]
            assert len(shown) <= caps.PREVIEW_ENTRIES, "I4: the preview is too long"
            assert len(set(shown)) == len(shown), "I4: a call twice in the preview"
        elif sort == keys.SUMMARY:
            covered = int(item["agents_total"])
            assert covered >= self._covered.get(whole, 0), "I5: a summary of fewer calls"
            self._covered[whole] = covered


def _may_touch_lake(label: str) -> bool:
    return label.rpartition(" ")[2].lower() == "lake" or label == "dynamodb.batch_write_item"


def _stays_deleted(record: dict[str, Any]) -> None:
    """I13: nothing takes a tombstone away, or puts anything of the run on it."""
    old, new = record.get("OldImage", {}), record.get("NewImage", {})
    if items.DELETED in old:
        assert new.get(items.DELETED) == old[items.DELETED], "I13: the tombstone is gone"
        changed = {name for name in old | new if old.get(name) != new.get(name)}
        theirs = {deletions.RECEIPT, keys.OPEN_RUNS_PARTITION, keys.OPEN_RUNS_SORT}
        assert changed <= theirs, f"I13: a tombstone was changed: {changed}"


def at_rest(world: World) -> None:
    """I1, I2, I3, I4, I5, I6, I7, I12, I13 and the lake, after `run` and `repair`."""
    stage = world.stage
    assert not world.reader.wrong, world.reader.wrong[0]
    invariants.caps_hold(stage)
    letters = stage.sqs.queues.get(DEAD_LETTERS, [])
    assert all(letter.attributes for letter in letters), "I1: a dead letter without a reason"
    refused = {letter.body for letter in letters}
    assert not refused & {body for sent in world.sent for body in sent.bodies}, "I1: good, refused"
    for stream in (world.stream, world.stream_of_lake):
        if not stream.poisoned and not world.faults.happened:
            assert not stream.given_up, f"I10: {stream.name} gave up without a fault"
    for sent in world.sent:
        if sent.ref in world.deleter.deleted:
            receipt = world.deleter.receipt(sent.ref)
            gone_for_good(stage, receipt)
            if stage.lake:
                gone_from_lake(stage, receipt)
            continue
        stored = _stored_once(stage, sent)
        if stage.lake:
            invariants.lake_equals_summary(stage, sent.ref)
        if sent.conflicting:
            continue  # which body arrived first decides what there is to sum
        _exact(world, sent, stored)
        swept.at_rest(world, sent)
        _confluent(stage, sent, calm_stage(sent), lost=world.stream.lost)
        if world.plan.rebuild:
            _confluent(stage, sent, rebuilt(stage, sent.ref), lost=world.stream.lost)
            _reconciled(world, sent)


def _stored_once(stage: MemoryStage, sent: Sent) -> set[str]:
    """I1, I2, I6: each step that was sent, as one of the bodies sent, and nothing else."""
    steps = stage.items_of(sent.ref, keys.STEP_PREFIX)
    stored = {item[keys.SORT].removeprefix(keys.STEP_PREFIX) for item in steps}
    assert stored == {step.step_id for step in sent.steps}, "I1, I2: the steps that are stored"
    assert len(steps) == len(stored), "I2: a step in two buckets"
    bodies = {wire.digest(wire.encode_event(event)) for event in sent.events}
    assert {item["digest"] for item in steps} <= bodies, "I2: a body that nobody sent"
    invariants.pointers_hold(stage, sent.ref)
    return stored


def _exact(world: World, sent: Sent, stored: set[str]) -> None:
    stage = world.stage
    expected = invariants.sums_of(sent.steps)
    totals = stage.item(sent.ref, keys.TOTALS) or {}
    if not world.stream.lost:
        found = {name: totals.get(name, 0) for name in expected}
        assert found == expected, f"I3: {found} for {expected}"
        preview = (stage.item(sent.ref, keys.PREVIEW) or {}).get(counts.PREVIEW_STEPS, [])
        assert len(preview) == min(caps.PREVIEW_ENTRIES, len(sent.steps)), "I4: preview at rest"
        assert {entry[0] for entry in preview} <= stored, "I4: a call that is not there"
    if sent.ended:
        summary = stage.item(sent.ref, keys.SUMMARY)
        assert summary is not None, "I5: no summary"
        assert {name: summary.get(name, 0) for name in expected} == expected, "I5: the summary"
        calls = sum(int(phase["calls"]) for phase in summary["phases_summary"])
        assert calls == len(sent.steps), "I5: the phases"


def _reconciled(world: World, sent: Sent) -> None:
    """`runtally reconcile` finds no drift; none that readers see where stream records were lost."""
    reader = DynamoDBRunReader(DynamoDBTable(cast("Any", world.stage.dynamodb), "t"))
    found = Reconcile(reader, wait=lambda: None)(sent.ref)
    assert found is not None, "the run is not there"
    assert found.calls == len(sent.steps), "reconcile counts otherwise"
    if not world.stream.lost:
        assert not found.drift, f"drift: {found.drift}"
    elif sent.ended:
        assert found.shown_exactly, f"drift that readers see: {found.drift}"


def calm_stage(sent: Sent) -> MemoryStage:
    """The same events in one message, once, with nothing in the way."""
    stage = quiet(MemoryStage())
    events = {wire.encode_event(event): event for event in sent.events}
    body = build.body(*events.values(), run=sent.ref, buckets=sent.buckets)
    assert stage.ingest(body) == []
    stage.drain()
    return _swept_late(stage)


def _swept_late(stage: MemoryStage) -> MemoryStage:
    stage.now_ns += SWEPT_AFTER_S * build.SECOND
    stage.sweep()
    stage.drain()
    return stage


def rebuilt(stage: MemoryStage, ref: RunRef) -> MemoryStage:
    """I12: a table made anew from the objects of a run alone."""
    fresh = quiet(MemoryStage())
    prefix = f"{keys.RUN_OBJECTS}{ref.tenant_id}/{ref.run_id}/"
    lines: list[bytes] = []
    for key in sorted(key for key in stage.s3.objects if key.startswith(prefix)):
        lines += gzip.decompress(stage.s3.objects[key]).splitlines()
        buckets = int(stage.s3.metadata[key]["buckets"])
    head = wire.Head(v=1, tenant_id=ref.tenant_id, run_id=ref.run_id, buckets=buckets)
    assert fresh.ingest(wire.seal(head, lines)) == []
    fresh.drain()
    return _swept_late(fresh)


def _confluent(stage: MemoryStage, sent: Sent, other: MemoryStage, *, lost: bool) -> None:
    here, there = _state(stage, sent, lost=lost), _state(other, sent, lost=lost)
    assert here.keys() == there.keys(), f"I7: {here.keys() ^ there.keys()}"
    for key, item in here.items():
        assert item == there[key], f"I7: {key}: {item} is not {there[key]}"


def _state(stage: MemoryStage, sent: Sent, *, lost: bool) -> dict[tuple[str, str], Any]:
    left_out = {keys.PREVIEW, keys.LAKE}
    if lost:
        left_out.add(keys.TOTALS)
    run = stage.item(sent.ref, keys.RUN) or {}
    if run["status"] == "running":  # a summary only where somebody asked for a recount
        left_out.add(keys.SUMMARY)
    return {
        key: {name: value for name, value in item.items() if name not in _UNSURE}
        for key, item in invariants.final_state(stage, sent.ref).items()
        if key[1] not in left_out
    }


def api_reads_back(world: World) -> None:
    """I8, I9, I13: what readers see at rest, with pages as small as they come."""
    for sent in world.sent:
        if sent.ref in world.deleter.deleted:
            _hidden(world.stage, sent.ref)
            continue
        run = world.stage.item(sent.ref, keys.RUN)
        assert run is not None
        page = world.stage.api.read_run(sent.ref, CallsWanted())
        found = [row.value.step_id for row in page.rows]  # type: ignore[attr-defined]
        assert found == sorted(step.step_id for step in sent.steps), "I9: the calls of a run"


def _hidden(stage: MemoryStage, ref: RunRef) -> None:
    """I13: in no list, and not to be read."""
    stage.dynamodb.settle()
    page = stage.api.list_runs(ref.tenant_id, RunsWanted(limit=100))
    assert ref.run_id not in [row.value.run_id for row in page.rows], "I13: listed"  # type: ignore[attr-defined]
    try:
        stage.api.read_run(ref, CallsWanted())
    except NotFound:
        return
    raise AssertionError("I13: a deleted run can be read")
