"""A tenant's shorter retention, and deletions that stopped halfway."""

import json
from dataclasses import replace

import pytest

from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.core import items, keys
from functions.core.keys import RunRef
from functions.core.tenants import Tenant
from functions.sweep.deleting import OVERDUE_NS, Deleted
from runtally import wire
from tests import build
from tests.build import SECOND, T0
from tests.fakes.calls import client_error
from tests.memory_stage import ERASURES, NOW_NS, SWEPT_EVERY_S, MemoryStage

DAY = 86_400 * SECOND
ENDED = T0 + 3_000 * SECOND


def stage_with(retention_days: int | None, *runs: tuple[str, wire.Event]) -> MemoryStage:
    stage = MemoryStage(retention_days=365)
    tenants = DynamoDBTenants(stage.sweep_parts.table)
    for tenant_id, days in (("acme", retention_days), ("globex", None)):
        tenants.create_tenant(Tenant(tenant_id, 1, retention_days=days))
        for run_id, end in runs:
            ref = RunRef(tenant_id, run_id)
            assert stage.ingest(build.body(build.started(), build.step(1), end, run=ref)) == []
    stage.drain()
    return stage


def deleted(stage: MemoryStage) -> set[RunRef]:
    return {
        keys.parse_run_partition(partition)[0]
        for (partition, sort), item in stage.dynamodb.items.items()
        if sort == keys.RUN and items.DELETED in item
    }


def erasures(stage: MemoryStage) -> list[str]:
    return [json.loads(sent.body)["run_id"] for sent in stage.sqs.queues.get(ERASURES, [])]


def test_runs_past_their_tenant_s_retention_are_deleted_once() -> None:
    stage = stage_with(7, ("old", build.ended()))
    stage.now_ns = ENDED + 7 * DAY
    assert stage.sweep()["DeletionsBegun"] == 0
    stage.now_ns += 1
    assert stage.sweep()["DeletionsBegun"] == 1
    assert deleted(stage) == {("acme", "old")}
    assert erasures(stage) == ["old"]
    assert stage.sweep()["DeletionsBegun"] == 0
    stage.erase_all()
    assert stage.items_of(RunRef("acme", "old"), keys.STEP_PREFIX) == []
    assert len(stage.items_of(RunRef("globex", "old"), keys.STEP_PREFIX)) == 1


def test_without_a_retention_of_its_own_a_tenant_keeps_what_the_stage_keeps() -> None:
    stage = stage_with(None, ("old", build.ended()))
    stage.now_ns = T0 + 300 * DAY
    assert stage.sweep()["DeletionsBegun"] == 0
    assert deleted(stage) == set()


def test_a_run_that_is_still_recorded_is_kept_until_it_is_stale() -> None:
    stage = stage_with(1)
    ref = RunRef("acme", "long")
    stage.ingest(build.body(build.started(stale_after_s=5 * 86_400), run=ref))
    stage.now_ns = T0 + 5 * DAY - 1
    assert stage.sweep()["DeletionsBegun"] == 0
    stage.now_ns += 1
    done = stage.sweep()
    assert (done["RunsStale"], done["DeletionsBegun"]) == (1, 0)
    stage.now_ns += DAY  # to the moment a day after it went stale
    assert stage.sweep()["DeletionsBegun"] == 0
    stage.now_ns += 1
    assert stage.sweep()["DeletionsBegun"] == 1
    assert deleted(stage) == {("acme", "long")}


def test_retention_counts_from_the_end_however_long_ago_the_start_is() -> None:
    stage = stage_with(7, ("long", build.ended(at=T0 + 20 * DAY)))
    stage.now_ns = T0 + 27 * DAY
    assert stage.sweep()["DeletionsBegun"] == 0
    stage.now_ns += 1
    assert stage.sweep()["DeletionsBegun"] == 1


def test_a_run_that_was_stale_for_longer_than_its_retention_and_goes_on_is_kept() -> None:
    stage = stage_with(1)
    run = RunRef("acme", "back")
    stage.ingest(build.body(build.started(stale_after_s=60), run=run))
    stage.now_ns = T0 + DAY // 2
    assert stage.sweep()["RunsStale"] == 1
    stage.now_ns = T0 + 9 * DAY
    # Also who is stale again by now: a day ago he was not.
    stage.ingest(build.body(build.log(9 * 86_400 - 3_600, "x"), run=run))
    stage.dynamodb.settle()
    stage.sweep_parts.deleting(lambda: False, Deleted())  # before the look of any sweep
    assert deleted(stage) == set()
    stage.ingest(build.body(build.log(9 * 86_400, "x"), run=run))
    assert (stage.item(run, keys.RUN) or {})["status"] == "running"


def test_tenants_without_a_due_run_are_left_to_the_next_sweep_too() -> None:
    stage = stage_with(1)
    stage.dynamodb.settle()
    deleting = Deleted()
    stage.calls.made.clear()
    stage.sweep_parts.deleting(lambda: True, deleting)
    assert not deleting.finished
    assert stage.calls.made.count("dynamodb.query") == 1  # the list of tenants


def test_a_run_that_ended_lately_costs_no_write_with_every_look() -> None:
    stage = stage_with(7, ("long", build.ended(at=T0 + 20 * DAY)), ("old", build.ended()))
    stage.now_ns = T0 + 26 * DAY
    assert stage.sweep()["DeletionsBegun"] == 1
    stage.calls.made.clear()
    units = stage.dynamodb.write_units
    assert stage.sweep()["DeletionsBegun"] == 0
    assert stage.dynamodb.write_units == units
    assert "dynamodb.update_item" not in stage.calls.made


def test_a_run_that_goes_on_while_the_index_still_shows_it_stale_is_kept() -> None:
    stage = stage_with(1)
    stage.ingest(build.body(build.started(), run=RunRef("acme", "late")))
    stage.now_ns = T0 + 2 * DAY
    stage.sweep()
    stage.dynamodb.settle()
    run = stage.dynamodb.items[keys.run_partition(RunRef("acme", "late")), keys.RUN]
    for name in items.STALE_MARK:
        run.pop(name, None)
    stage.now_ns = T0 + 9 * DAY
    stage.sweep_parts.deleting(lambda: False, Deleted())
    assert deleted(stage) == set()


def test_a_sweep_without_time_goes_on_with_the_next() -> None:
    stage = stage_with(1, *((f"run-{n}", build.ended()) for n in range(7)))
    stage.now_ns = T0 + 2 * DAY
    for sweeps in range(1, 4):
        left = [True] * 4  # for a tenant, and three of its runs
        stage.dynamodb.settle()
        stage.sweep_parts.deleting(lambda left=left: not (left and left.pop()), Deleted())  # type: ignore[misc]
        assert len(deleted(stage)) == min(7, 3 * sweeps)
    stage.dynamodb.settle()
    last = Deleted()
    stage.sweep_parts.deleting(lambda: False, last)
    assert last.finished


def test_a_deletion_whose_request_was_lost_is_asked_for_again_after_an_hour() -> None:
    stage = stage_with(None, ("run-1", build.ended()))
    stage.api.delete_run(RunRef("acme", "run-1"))
    stage.sqs.queues.clear()
    stage.now_ns = NOW_NS + OVERDUE_NS
    assert stage.sweep()["DeletionsOverdue"] == 0
    stage.now_ns += 1
    assert stage.sweep()["DeletionsOverdue"] == 1
    assert erasures(stage) == ["run-1"]
    stage.erase_all()
    assert stage.sweep()["DeletionsOverdue"] == 0


def test_an_overdue_deletion_is_asked_for_once_an_hour_and_shows_all_the_time() -> None:
    stage = stage_with(None, ("run-1", build.ended()))
    stage.api.delete_run(RunRef("acme", "run-1"))
    stage.sqs.queues.clear()
    stage.now_ns = NOW_NS + OVERDUE_NS + 1
    asked_by = []
    for sweep in range(40):
        before = len(erasures(stage))
        assert stage.sweep()["DeletionsOverdue"] == 1
        asked_by += [sweep] * (len(erasures(stage)) - before)
        stage.now_ns += SWEPT_EVERY_S * SECOND
    assert asked_by == [0, 13, 25, 37]  # the first one in each 61 minutes


def test_retention_does_not_wait_for_those_that_are_overdue() -> None:
    stage = stage_with(7, *((f"run-{n}", build.ended()) for n in range(5)))
    for n in range(4):
        stage.api.delete_run(RunRef("acme", f"run-{n}"))
    stage.now_ns = T0 + 9 * DAY
    left = [True] * 2
    stage.dynamodb.settle()
    stage.sweep_parts.deleting(lambda: not (left and left.pop()), Deleted())
    assert ("acme", "run-4") in deleted(stage)


def newer(stage: MemoryStage, partition: str, sort: str) -> None:
    stage.dynamodb.items[partition, sort]["v"] = {"N": "99"}


def test_what_one_tenant_or_run_meets_costs_the_others_nothing() -> None:
    stage = stage_with(1, *((f"run-{n}", build.ended()) for n in range(3)))
    newer(stage, *keys.tenant_item("acme"))
    DynamoDBTenants(stage.sweep_parts.table).set_retention("globex", 1)
    newer(stage, *keys.item_of_run(RunRef("globex", "run-1"), keys.RUN))
    stage.now_ns = T0 + 3 * DAY
    done = stage.sweep()
    assert (done["DeletionsBegun"], done["RunsFailed"], done["SweepsUnfinished"]) == (2, 2, 0)
    assert deleted(stage) == {("globex", "run-0"), ("globex", "run-2")}


def test_a_request_that_is_refused_costs_the_other_deletions_nothing() -> None:
    stage = stage_with(None, *((f"run-{n}", build.ended()) for n in range(3)))
    for n in range(3):
        stage.api.delete_run(RunRef("acme", f"run-{n}"))
    stage.sqs.queues.clear()
    stage.now_ns = NOW_NS + OVERDUE_NS + 1

    def once(call: str, when: str) -> None:
        if call == "sqs.send_message" and when == "before":
            stage.calls.hook = lambda call, when: None
            raise client_error(call, "InternalServerError")

    stage.calls.hook = once
    assert stage.sweep()["RunsFailed"] == 1
    assert len(erasures(stage)) == 2


@pytest.mark.parametrize("days", [1, 30])
def test_a_tenant_reads_back_with_its_retention(days: int) -> None:
    stage = MemoryStage()
    tenants = DynamoDBTenants(stage.sweep_parts.table)
    tenant = Tenant("acme", 1, "Acme")
    tenants.create_tenant(tenant)
    assert tenants.set_retention("acme", days) == replace(tenant, retention_days=days)
    assert tenants.load_tenant("acme") == replace(tenant, retention_days=days)
    assert tenants.set_retention("acme", None) == tenant
    assert tenants.set_retention("nobody", days) is None
