"""What the lake stands on, on the fakes and on the embedded AWS: notes, files, versions, locks."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any

import pytest

from functions.adapters.dynamodb_deletions import DynamoDBItemsOfRun, DynamoDBTombstones
from functions.adapters.dynamodb_lake import DynamoDBLakeNotes
from functions.adapters.dynamodb_runs import DynamoDBRunStore
from functions.adapters.s3_lake import S3LakeFiles
from functions.adapters.s3_lake_versions import S3LakeVersions
from functions.core import keys, lake, lake_ports
from functions.core.keys import RunRef
from functions.core.lake_ports import LakeNote
from functions.core.model import Order, Run, Start
from tests.build import T0
from tests.contract.conftest import Services
from tests.fakes.s3 import MemoryS3

pytestmark = pytest.mark.xdist_group("contract")

_numbers = count(1)
LATER = 2_000_000_000
DAY = "2026-11-30"


@pytest.fixture
def ref() -> RunRef:
    return RunRef(f"lake-{next(_numbers)}", "run-1")


# -- notes --------------------------------------------------------------------------------------


def test_one_of_two_claims_stands(services: Services, ref: RunRef) -> None:
    notes = DynamoDBLakeNotes(services.table)
    before = notes.load_note(ref)
    assert before == LakeNote()
    first, other = before.claimed(DAY, LATER, 3), before.claimed("2026-11-29", LATER, 3)
    assert notes.put_note(ref, before, first)
    assert not notes.put_note(ref, before, other)
    assert notes.load_note(ref) == first == LakeNote((DAY,), 1, LATER, 3)
    second = first.claimed("2026-11-29", 1, 4)
    assert notes.put_note(ref, first, second)
    assert not notes.put_note(ref, first, second)
    assert notes.load_note(ref) == LakeNote((DAY, "2026-11-29"), 2, LATER, 4)


def test_notes_are_forgotten_however_often_a_run_is_named(services: Services, ref: RunRef) -> None:
    notes = DynamoDBLakeNotes(services.table)
    runs = [ref._replace(run_id=f"run-{n}") for n in range(30)]
    for each in runs:
        assert notes.put_note(each, LakeNote(), LakeNote((DAY,), 1, LATER))
    notes.forget([*runs, *runs[:5], ref._replace(run_id="never-there")])
    assert {notes.load_note(each).turn for each in runs} == {0}
    notes.forget([])


def test_a_run_that_is_gone_is_buried_where_its_note_is_left(
    services: Services, ref: RunRef
) -> None:
    tombstones, notes = DynamoDBTombstones(services.table), DynamoDBLakeNotes(services.table)
    assert tombstones.bury(ref, T0, LATER) is None
    assert notes.put_note(ref, LakeNote(), LakeNote((DAY,), 1, LATER))
    deletion = tombstones.bury(ref, T0, LATER, at_rest_before=0)
    assert deletion is not None
    assert (deletion.requested_at, deletion.expires_at, deletion.buckets) == (T0, LATER, 1)
    assert tombstones.bury(ref, T0 + 1, LATER + 1) == deletion == tombstones.load_deletion(ref)
    stands = services.table.get(keys.item_of_run(ref, keys.RUN)) or {}
    assert (stands["GSI2PK"], stands["GSI2SK"]) == keys.unfinished_deletion(ref, T0)
    opened = DynamoDBRunStore(services.table).open_run(Run(ref, 1, Start(Order(T0, "d")), LATER))
    assert opened is not None
    assert opened.deleted
    assert list(DynamoDBItemsOfRun(services.table).take_items(deletion)) == []


# -- files --------------------------------------------------------------------------------------


@pytest.fixture(params=["unlocked", "locked"])
def bucket(services: Services, request: pytest.FixtureRequest) -> tuple[str, datetime | None]:
    """One with versions, as the stack's, and until when what is put now is locked, at the least."""
    locked = request.param == "locked"
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1) if locked else None
    s3 = services.s3
    if isinstance(s3, MemoryS3):
        s3.lock_until = until
        return services.bucket, until
    name = f"lake-{next(_numbers)}"
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    if locked:
        retention = {"Mode": "COMPLIANCE", "Days": 1}
        s3.put_object_lock_configuration(
            Bucket=name,
            ObjectLockConfiguration={
                "ObjectLockEnabled": "Enabled",
                "Rule": {"DefaultRetention": retention},
            },
        )
    return name, until


def put_twice(services: Services, bucket: str, runs: Iterable[RunRef], day: str = DAY) -> None:
    files = S3LakeFiles(services.s3, bucket)
    for run in runs:
        for table, told in product(lake.TABLES, ("first", "second")):
            row = dict.fromkeys(column.name for column in table.columns) | {"pipeline": told}
            assert files.put_rows(run, table, day, [row]) == 1


def shown(s3: Any, bucket: str, run: RunRef) -> list[str]:
    answer = s3.list_objects_v2(Bucket=bucket, Prefix="lake/")
    found = {each["Key"] for each in answer.get("Contents", ())}
    return sorted(found & set(lake_ports.objects_of_run(run, DAY)))


def versions(s3: Any, bucket: str, run: RunRef) -> int:
    answer = s3.list_object_versions(Bucket=bucket, Prefix="lake/")
    every = set(lake_ports.objects_of_run(run, DAY))
    return sum(each["Key"] in every for each in answer.get("Versions", ()))


def test_a_run_is_taken_or_hidden_and_its_neighbours_stay(
    services: Services, bucket: tuple[str, datetime | None], ref: RunRef
) -> None:
    name, until = bucket
    neighbours = [ref._replace(run_id="run-10"), ref._replace(run_id="run-1.parquet")]
    put_twice(services, name, [ref, *neighbours])
    objects = S3LakeVersions(services.s3, name)
    (taken,) = objects.take_run(ref, [DAY, "2026-11-29"])
    assert taken.names == 3
    assert shown(services.s3, name, ref) == []
    for each in neighbours:
        assert len(shown(services.s3, name, each)) == 3
        assert versions(services.s3, name, each) == 6
    if until is None:
        assert (taken.versions, taken.locked_until) == (6, None)
        assert versions(services.s3, name, ref) == 0
        assert list(objects.take_run(ref, [DAY])) == []
        return
    assert taken.versions == 0
    assert versions(services.s3, name, ref) == 6
    assert taken.locked_until is not None
    late_s = taken.locked_until / 10**9 - until.timestamp()
    assert 0 <= late_s < 60
    (again,) = objects.take_run(ref, [DAY])
    assert again == taken._replace(names=0)
    assert shown(services.s3, name, ref) == []


def test_a_file_that_is_there_already_is_no_new_version(
    services: Services, bucket: tuple[str, datetime | None], ref: RunRef
) -> None:
    name, _ = bucket
    put_twice(services, name, [ref])
    files = S3LakeFiles(services.s3, name)
    row = dict.fromkeys(column.name for column in lake.RUNS.columns) | {"pipeline": "second"}
    assert files.put_rows(ref, lake.RUNS, DAY, [row]) == 1
    assert versions(services.s3, name, ref) == 6
    files.hide(ref, DAY)
    assert files.put_rows(ref, lake.RUNS, DAY, [row]) == 1
    assert versions(services.s3, name, ref) == 7
    key = lake_ports.object_of_run(lake.RUNS, ref, DAY)
    assert services.s3.head_object(Bucket=name, Key=key)["Metadata"][lake_ports.ROWS] == "1"


def test_a_tenant_s_runs_are_listed_with_those_that_are_hidden(
    services: Services, bucket: tuple[str, datetime | None], ref: RunRef
) -> None:
    name, until = bucket
    other = ref._replace(run_id="run-2")
    stranger = ref._replace(tenant_id=f"{ref.tenant_id}0")
    put_twice(services, name, [ref, other, stranger])
    S3LakeFiles(services.s3, name).hide(other, DAY)
    folder = lake_ports.files_of_calls(ref.tenant_id)
    services.s3.put_object(Bucket=name, Key=folder, Body=b"", ChecksumAlgorithm="CRC32")
    objects = S3LakeVersions(services.s3, name)
    assert set(objects.runs_of_tenant(ref.tenant_id)) == {ref, other}
    taken = list(objects.take_tenant(ref.tenant_id))
    assert shown(services.s3, name, ref) == shown(services.s3, name, other) == []
    assert len(shown(services.s3, name, stranger)) == 3
    assert {one.locked_until is None for one in taken} == {until is None}
