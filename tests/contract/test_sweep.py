"""What core.ports.OpenRuns and EventBus promise, on the fakes and on the embedded AWS alike."""

import json
from dataclasses import replace
from typing import Any

import pytest

from functions.adapters.dynamodb_deletions import DynamoDBTombstones
from functions.adapters.dynamodb_sweep import DynamoDBOpenRuns
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.eventbridge import EventBridgeBus
from functions.core import keys
from functions.core.errors import NewerSchema
from functions.core.keys import Pointer, RunRef
from functions.core.model import End, Order, Run, RunStatus, Stale, Start, Totals
from functions.core.ports import Place, Recorded, UnfinishedDeletion
from functions.core.run_events import run_stale
from functions.core.tenants import Tenant
from tests import build
from tests.contract.conftest import Services

pytestmark = pytest.mark.xdist_group("contract")

STALE = Stale(since=build.T0 + 5, counted=2)


@pytest.fixture
def store(services: Services) -> DynamoDBOpenRuns:
    return DynamoDBOpenRuns(services.table)


def opened(services: Services, ref: RunRef, buckets: int = 1) -> Run:
    start = Start(Order(build.T0, "0a"), pipeline="p", stale_after_s=7)
    run = Run(ref, buckets, start, expires_at=2_000_000_000)
    assert services.runs.open_run(run) is None
    return run


def settle(services: Services) -> None:
    """Let the index of the fake catch up; the embedded AWS's does not lag."""
    getattr(services.dynamodb, "settle", lambda: None)()


def listed(store: DynamoDBOpenRuns, limit: int = 100) -> list[RunRef]:
    found: list[RunRef] = []
    place = Place()
    while place.shard < keys.OPEN_RUN_SHARDS:
        refs, place = store.page_of_open_runs(place, limit)
        found += refs
    return found


@pytest.mark.parametrize("limit", [1, 100])
def test_every_open_run_is_listed_once_in_pages_of_any_size(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef, limit: int
) -> None:
    refs = {RunRef(ref.tenant_id, f"{ref.run_id}-{n}") for n in range(12)}
    runs = [opened(services, each) for each in refs]
    settle(services)
    found = [each for each in listed(store, limit) if each in refs]
    assert sorted(found) == sorted(refs)
    assert store.load_runs(found) == {run.ref: run for run in runs}
    services.runs.end_run(runs[0], End(Order(build.T0, "1b"), RunStatus.FAILED))
    settle(services)
    assert {each for each in listed(store, limit) if each in refs} == refs - {runs[0].ref}


def test_the_newest_step_of_any_bucket_or_log_is_found(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    run = opened(services, ref, buckets=3)
    assert store.newest_event_at(run) == build.T0
    pointer = Pointer("x", 0, 1)
    for n in (1, 2, 9, 4):
        services.runs.append_steps(run, [Recorded(build.step(n), "0a", pointer, build.T0)])
    assert store.newest_event_at(run) == build.T0 + 10 * build.SECOND
    services.runs.append_log(run, Recorded(build.log(50, "x"), "0a", pointer, build.T0))
    assert store.newest_event_at(run) == build.T0 + 50 * build.SECOND


def test_a_mark_is_set_renewed_and_taken_off_by_who_saw_the_one_before(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    run = opened(services, ref)
    assert store.mark_stale(run, STALE)
    assert store.mark_stale(run, STALE)  # the answer was lost, and the write sent again
    assert not store.mark_stale(run, replace(STALE, counted=3))
    marked = replace(run, stale=STALE)
    assert services.runs.load_run(ref) == marked
    assert marked.status is RunStatus.STALE
    assert store.mark_stale(marked, replace(STALE, counted=4))
    assert not store.take_mark_off(marked)
    assert store.take_mark_off(replace(run, stale=replace(STALE, counted=4)))
    assert services.runs.load_run(ref) == run


def test_a_mark_says_who_is_still_to_be_told_of_until_somebody_was(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    run = opened(services, ref)
    untold = replace(STALE, untold=True)
    assert store.mark_stale(run, untold)
    assert store.mark_stale(run, untold)  # the answer was lost, and the write sent again
    assert store.load_run(ref) == replace(run, stale=untold)
    assert store.mark_stale(replace(run, stale=untold), STALE)
    assert store.load_run(ref) == replace(run, stale=STALE)
    assert store.mark_stale(replace(run, stale=STALE), untold)
    assert store.take_mark_off(replace(run, stale=untold))
    assert store.load_run(ref) == run


def test_what_comes_later_moves_a_mark_or_takes_it_off(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    run, runs = opened(services, ref), services.runs
    for act in (runs.move_mark, runs.resume):
        act(run, STALE.since)
        assert runs.load_run(ref) == run  # it has no mark
    untold = replace(STALE, untold=True)
    assert store.mark_stale(run, untold)
    for act in (runs.move_mark, runs.resume):
        act(run, STALE.since)
        assert runs.load_run(ref) == replace(run, stale=untold)  # which is no older
    for _ in range(2):
        runs.move_mark(run, STALE.since + 1)
        assert runs.load_run(ref) == replace(run, stale=replace(untold, since=STALE.since + 1))
    for _ in range(2):
        runs.resume(run, STALE.since + 2)
        assert runs.load_run(ref) == run
    status = (services.table.get(keys.item_of_run(ref, keys.RUN)) or {})["status"]
    assert status == RunStatus.RUNNING
    DynamoDBTombstones(services.table).bury(ref, build.T0, 2_000_000_000)
    tombstone = services.table.get(keys.item_of_run(ref, keys.RUN))
    for act in (runs.move_mark, runs.resume):
        act(run, STALE.since + 3)
    assert services.table.get(keys.item_of_run(ref, keys.RUN)) == tombstone


def test_retention_buries_only_who_ended_or_went_stale_before_then(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    tombstones = DynamoDBTombstones(services.table)
    running, stale, ended = (RunRef(ref.tenant_id, f"{ref.run_id}-{n}") for n in range(3))
    runs = [opened(services, each) for each in (running, stale, ended)]
    assert store.mark_stale(runs[1], STALE)
    services.runs.end_run(runs[2], End(Order(STALE.since, "1b"), RunStatus.FAILED))
    later = build.T0 + build.SECOND
    assert tombstones.bury(running, later, 2_000_000_000, later) is None
    for each in (stale, ended):
        assert tombstones.bury(each, later, 2_000_000_000, STALE.since) is None
        assert tombstones.bury(each, later, 2_000_000_000, STALE.since + 1) is not None
        assert tombstones.bury(each, later, 2_000_000_000, STALE.since + 1) is not None  # again


def test_what_this_code_may_misread_is_told_apart(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    run = opened(services, ref)
    other = opened(services, RunRef(ref.tenant_id, f"{ref.run_id}-newer"))
    tenants = DynamoDBTenants(services.table)
    tenant_id = f"tenant-of-newer-{ref.run_id}"
    tenants.create_tenant(Tenant(tenant_id, 1))
    for key in (keys.item_of_run(other.ref, keys.RUN), keys.tenant_item(tenant_id)):
        services.table.update(key, "SET #v = :v", "", {":v": 99})
    settle(services)
    gone = RunRef(ref.tenant_id, f"{ref.run_id}-none")
    found = store.load_runs([run.ref, gone, other.ref])
    assert found.keys() == {run.ref, other.ref}
    assert found[run.ref] == run
    assert isinstance(found[other.ref], NewerSchema)
    assert any(isinstance(each, NewerSchema) for each in tenants.each_tenant())
    services.table.update(keys.tenant_item(tenant_id), "SET #v = :v", "", {":v": 1})
    assert Tenant(tenant_id, 1) in tenants.each_tenant()


def test_no_mark_on_a_run_that_has_ended_is_deleted_or_is_not_there(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    run = opened(services, ref)
    assert store.mark_stale(run, STALE)
    end = End(Order(build.T0, "1b"), RunStatus.FAILED)
    services.runs.end_run(run, end)
    ended = replace(run, end=end)
    assert services.runs.load_run(ref) == ended
    for seen in (run, replace(run, stale=STALE)):
        assert not store.mark_stale(seen, STALE)
        assert not store.take_mark_off(seen)
    assert services.runs.load_run(ref) == ended
    DynamoDBTombstones(services.table).bury(ref, build.T0, 2_000_000_000)
    assert not store.mark_stale(run, STALE)
    assert not store.mark_stale(replace(run, ref=RunRef("acme", f"{ref.run_id}-none")), STALE)
    assert services.table.get(keys.item_of_run(RunRef("acme", f"{ref.run_id}-none"), "RUN")) is None


def test_an_unfinished_deletion_is_listed_by_its_age(
    services: Services, store: DynamoDBOpenRuns, ref: RunRef
) -> None:
    opened(services, ref)
    DynamoDBTombstones(services.table).bury(ref, build.T0 + 7, 2_000_000_000)
    settle(services)

    def overdue(until: int) -> list[UnfinishedDeletion]:
        shards = range(keys.OPEN_RUN_SHARDS)
        return [each for shard in shards for each in store.unfinished_before(shard, until)]

    assert (ref, build.T0 + 7) in overdue(build.T0 + 8)
    assert (ref, build.T0 + 7) not in overdue(build.T0 + 7)
    assert ref not in listed(store)


def test_a_place_is_kept(store: DynamoDBOpenRuns, ref: RunRef) -> None:
    for place in (Place(3, ref), Place(7), Place(2, ref, build.T0, build.T0 - 7), Place()):
        store.save_place(place)
        assert store.load_place() == place


def test_a_tenant_s_retention_is_set_and_taken_away(services: Services, ref: RunRef) -> None:
    tenants = DynamoDBTenants(services.table)
    tenant = Tenant(f"tenant-of-{ref.run_id}", 1, "名前")
    assert tenants.set_retention(tenant.tenant_id, 7) is None
    tenants.create_tenant(tenant)
    for days in (7, 7, None, None):
        assert tenants.set_retention(tenant.tenant_id, days) == replace(tenant, retention_days=days)
    settle(services)
    assert tenant in tenants.list_tenants()


def test_events_reach_whoever_has_a_rule_for_them(services: Services, ref: RunRef) -> None:
    arrived = subscribed(services)
    run = replace(opened(services, ref), stale=STALE)
    runs = [replace(run, ref=RunRef("acme", f"{ref.run_id}-{n}")) for n in range(13)]
    bus = EventBridgeBus(lambda: services.events)
    assert bus.publish([]) == []
    assert bus.publish([run_stale(each, STALE.since, Totals()) for each in runs]) == []
    ours = {each.ref.run_id for each in runs}
    found: set[str] = set()
    for _ in range(20):
        found |= {detail["run_id"] for detail in arrived()} & ours
        if found == ours:
            break
    assert found == ours


def subscribed(services: Services) -> Any:
    """Gives the details of what has arrived in the queue since; of the fake, of all."""
    if hasattr(services.events, "details"):
        return lambda: services.events.details("run.stale")
    pattern = json.dumps({"source": ["runtally"], "detail-type": ["run.stale"]})
    services.events.put_rule(Name="contract", EventPattern=pattern)
    attributes = services.sqs.get_queue_attributes(
        QueueUrl=services.queue_url, AttributeNames=["QueueArn"]
    )
    target = {"Id": "queue", "Arn": attributes["Attributes"]["QueueArn"]}
    services.events.put_targets(Rule="contract", Targets=[target])

    def arrived() -> list[dict[str, Any]]:
        answer = services.sqs.receive_message(
            QueueUrl=services.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        for message in answer.get("Messages", []):
            services.sqs.delete_message(
                QueueUrl=services.queue_url, ReceiptHandle=message["ReceiptHandle"]
            )
        return [json.loads(message["Body"])["detail"] for message in answer.get("Messages", [])]

    return arrived
