"""What deletion stands on, on the fakes and on the embedded AWS: tombstones, batches, versions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from functions.adapters.dynamodb import Span
from functions.adapters.dynamodb_deletions import DynamoDBItemsOfRun, DynamoDBTombstones
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.dynamodb_tenant_deletion import DynamoDBTenantData
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.s3_versions import S3Versions
from functions.adapters.sqs import SqsErasures
from functions.core import invocations, keys, tenants
from functions.core.errors import NewerSchema
from functions.core.invocations import Invocation
from functions.core.items import Item
from functions.core.keys import InvocationRef, RunRef
from functions.core.model import End, Order, Run, RunStatus, Start
from functions.core.schema import SCHEMA_VERSION
from functions.core.tenant_deletion import SEGMENTS
from functions.core.tenants import Tenant
from tests.build import T0
from tests.contract.conftest import Services
from tests.fakes.dynamodb import MemoryDynamoDB

pytestmark = pytest.mark.xdist_group("contract")

_numbers = count(1)
LATER = 2_000_000_000


@pytest.fixture
def ref() -> RunRef:
    return RunRef(f"deletion-{next(_numbers)}", "run-1")


def opened(services: Services, ref: RunRef, buckets: int = 2) -> Run:
    start = Start(Order(T0, "d"), pipeline="p", attributes='{"a":1}')
    run = Run(ref, buckets, start, LATER)
    assert services.runs.open_run(run) is None
    return run


def test_a_tombstone_takes_the_place_of_the_run_once(services: Services, ref: RunRef) -> None:
    run = opened(services, ref)
    services.runs.end_run(run, End(Order(T0, "e"), RunStatus.SUCCEEDED))
    tombstones = DynamoDBTombstones(services.table)
    deletion = tombstones.bury(ref, T0, LATER + 1)
    assert deletion is not None
    assert (deletion.requested_at, deletion.expires_at, deletion.buckets) == (T0, LATER + 1, 2)
    assert tombstones.bury(ref, T0 + 1, LATER + 2) == deletion
    assert tombstones.load_deletion(ref) == deletion
    stands = services.table.get(keys.item_of_run(ref, keys.RUN)) or {}
    unfinished = keys.unfinished_deletion(ref, T0)
    assert (stands["GSI2PK"], stands["GSI2SK"]) == unfinished
    assert not {"start", "end", "status", "pipeline", "GSI1PK", "GSI1SK"} & stands.keys()


def test_nothing_is_not_buried_and_the_expired_is(services: Services, ref: RunRef) -> None:
    tombstones = DynamoDBTombstones(services.table)
    assert tombstones.bury(ref, T0, LATER) is None
    assert tombstones.load_deletion(ref) is None
    opened(services, ref)
    deletion = tombstones.bury(ref, LATER * 10**9, LATER + 1)
    assert deletion is not None
    assert tombstones.load_deletion(ref) == deletion


def test_a_run_of_a_newer_schema_is_left_as_it_is(services: Services, ref: RunRef) -> None:
    key = keys.item_of_run(ref, keys.RUN)
    item = {"PK": key.partition, "SK": key.sort, "v": SCHEMA_VERSION + 1, "status": "new"}
    services.table.put(item, "attribute_not_exists(PK)")
    with pytest.raises(NewerSchema):
        DynamoDBTombstones(services.table).bury(ref, T0, LATER)
    assert services.table.get(key) == item


def test_a_run_that_does_not_say_its_schema_is_buried(services: Services, ref: RunRef) -> None:
    key = keys.item_of_run(ref, keys.RUN)
    item = {"PK": key.partition, "SK": key.sort, "status": "old"}
    services.table.put(item, "attribute_not_exists(PK)")
    assert DynamoDBTombstones(services.table).bury(ref, T0, LATER) is not None


def test_a_tenants_tombstone_stands_in_its_place(services: Services, ref: RunRef) -> None:
    data, name = DynamoDBTenantData(services.table), ref.tenant_id
    made, runs = DynamoDBTenants(services.table), DynamoDBRunStore(services.table)
    tenant = Tenant(name, T0, "Acme", 7)
    assert not data.has_tenant(name)
    assert made.create_tenant(tenant)
    assert data.has_tenant(name)
    assert not runs.is_tenant_deleted(name)
    for later in range(2):
        assert data.bury_tenant(name, T0 + later, LATER + later) == T0
        assert runs.is_tenant_deleted(name)
    assert set(services.table.get(keys.tenant_item(name)) or {}) == {
        "PK", "SK", "v", "deleted_at", "expires_at",
    }  # fmt: skip
    assert made.load_tenant(name) is None
    assert made.set_retention(name, 3) is None
    assert name not in {each.tenant_id for each in made.list_tenants()}
    # One put a moment ago the index may still list as the tenant that it was.
    assert name not in {getattr(each, "tenant_id", "") for each in made.each_tenant()}
    assert made.create_tenant(tenant)
    assert made.load_tenant(name) == tenant
    assert not runs.is_tenant_deleted(name)


def test_a_tenant_of_a_newer_schema_is_left_as_it_is(services: Services, ref: RunRef) -> None:
    key = keys.tenant_item(ref.tenant_id)
    item = {"PK": key.partition, "SK": key.sort, "v": SCHEMA_VERSION + 1}
    services.table.put(item, "attribute_not_exists(PK)")
    with pytest.raises(NewerSchema):
        DynamoDBTenantData(services.table).bury_tenant(ref.tenant_id, T0, LATER)
    assert services.table.get(key) == item


def test_a_receipt_is_replaced_by_one_of_two(services: Services, ref: RunRef) -> None:
    opened(services, ref)
    tombstones = DynamoDBTombstones(services.table)
    before = tombstones.bury(ref, T0, LATER)
    assert before is not None
    one, other = (replace(before, items=items, turn=1) for items in (3, 4))
    assert tombstones.note(before, one)
    assert tombstones.note(before, one)  # whose answer was lost
    assert not tombstones.note(before, other)
    finished = replace(one, turn=2, finished_at=T0, since=T0)
    assert tombstones.note(one, finished)
    assert tombstones.load_deletion(ref) == finished
    assert "GSI2PK" not in (services.table.get(keys.item_of_run(ref, keys.RUN)) or {})


def test_all_items_but_the_tombstone_are_taken(services: Services, ref: RunRef) -> None:
    neighbour = ref._replace(run_id="run-10")
    for run in (ref, neighbour):
        opened(services, run)
        for bucket in range(2):
            for n in range(30):
                item = {"PK": keys.run_partition(run, bucket), "SK": f"AGENT#{n:02}"}
                services.table.put(item, "attribute_not_exists(PK)")
        for sort in ("LOG#1", "RESULT", "TOTALS", "PREVIEW", "SUMMARY"):
            item = {"PK": keys.run_partition(run), "SK": sort}
            services.table.put(item, "attribute_not_exists(PK)")
    deletion = DynamoDBTombstones(services.table).bury(ref, T0, LATER)
    assert deletion is not None
    items = DynamoDBItemsOfRun(services.table)
    assert sum(items.take_items(deletion)) == 65
    assert list(items.take_items(deletion)) == []
    assert [item["SK"] for item in everything(services, ref)] == ["RUN"]
    assert len(everything(services, neighbour)) == 36


def everything(services: Services, ref: RunRef) -> list[Item]:
    return services.table.page(Span(keys.run_partition(ref), "A", "~")).items


def test_an_absent_item_may_be_deleted(services: Services, ref: RunRef) -> None:
    services.table.delete_many([keys.item_of_run(ref, keys.RUN)])


@pytest.fixture
def versioned(services: Services) -> str:
    """A bucket with versions, as the stack's."""
    if isinstance(services.dynamodb, MemoryDynamoDB):
        return services.bucket
    services.s3.create_bucket(Bucket="versioned")
    services.s3.put_bucket_versioning(
        Bucket="versioned", VersioningConfiguration={"Status": "Enabled"}
    )
    return "versioned"


def test_all_versions_below_a_prefix_are_taken(
    services: Services, versioned: str, ref: RunRef
) -> None:
    s3 = services.s3
    mine, inbox = keys.object_of_run(ref, "a"), f"{keys.inbox_prefix(ref)}b"
    neighbour = keys.object_of_run(ref._replace(run_id="run-10"), "a")
    for key in (mine, mine, inbox, neighbour):
        s3.put_object(Bucket=versioned, Key=key, Body=b"x")
    s3.delete_objects(Bucket=versioned, Delete={"Objects": [{"Key": mine}]})
    objects = S3Versions(s3, versioned)
    assert list(objects.take_objects(ref)) == [(1, 3), (1, 1)]
    assert list(objects.take_objects(ref)) == []
    assert list(below(s3, versioned, neighbour)) == [neighbour]


def below(s3: Any, bucket: str, prefix: str) -> Iterator[str]:
    answer = s3.list_object_versions(Bucket=bucket, Prefix=prefix)
    for each in (*answer.get("Versions", ()), *answer.get("DeleteMarkers", ())):
        yield each["Key"]


def test_a_version_that_is_gone_may_be_deleted(services: Services, versioned: str) -> None:
    gone = {"Objects": [{"Key": "nothing", "VersionId": "null"}], "Quiet": True}
    assert "Errors" not in services.s3.delete_objects(Bucket=versioned, Delete=gone)


def test_a_delayed_request_shows_later(services: Services) -> None:
    url = services.sqs.create_queue(QueueName=f"delayed-{next(_numbers)}")["QueueUrl"]
    erasures = SqsErasures(services.sqs, url)
    erasures.request_erasure(RunRef("acme", "later"), 900)
    erasures.request_erasure(RunRef("acme", "now"))
    answer = services.sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60
    )
    assert [message["Body"] for message in answer["Messages"]] == [
        '{"tenant_id":"acme","run_id":"now"}'
    ]


def test_a_tenants_data_is_found_and_a_neighbours_stays(services: Services, ref: RunRef) -> None:
    data, tenant = DynamoDBTenantData(services.table), ref.tenant_id
    neighbour = f"{tenant}-0"
    for each in (tenant, neighbour):
        opened(services, RunRef(each, "run-1"))
        services.table.put(tenants.tenant_item(Tenant(each, T0)), "attribute_not_exists(PK)")
        issued = tenants.issue_key(each, "k", T0, each.encode())
        services.table.put(tenants.key_item(issued.key), "attribute_not_exists(PK)")
        for n in range(30):
            made = Invocation(InvocationRef(each, f"i{n}"), "research", T0, T0, "d", LATER)
            item = invocations.invocation_item(made)
            services.table.put(item, "attribute_not_exists(PK)")
    if isinstance(services.dynamodb, MemoryDynamoDB):
        services.dynamodb.settle()
    assert list(data.runs_of_tenant(tenant)) == [ref]
    assert data.unfinished_deletions(tenant) == 0
    DynamoDBTombstones(services.table).bury(ref, T0, LATER)
    if isinstance(services.dynamodb, MemoryDynamoDB):
        services.dynamodb.settle()
    assert list(data.runs_of_tenant(tenant)) == []
    assert (data.unfinished_deletions(tenant), data.unfinished_deletions(neighbour)) == (1, 0)
    assert data.delete_keys(tenant) == 1
    assert sum(data.delete_invocations(tenant, n) for n in range(SEGMENTS)) == 30
    assert sum(data.delete_invocations(neighbour, n) for n in range(SEGMENTS)) == 30
    assert data.delete_keys(neighbour) == 1
