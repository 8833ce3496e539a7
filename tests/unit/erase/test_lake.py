"""Deletion where there is a lake: its files go with the run, late ones too; a lock is told of."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.core import keys, lake_ports
from functions.core.errors import NotFound, Unavailable
from functions.core.keys import RunRef
from tests import build
from tests.build import RUN, T0
from tests.fakes.calls import client_error
from tests.memory_lake import MemoryLake
from tests.memory_stage import ERASURES, QUIET_S, MemoryStage
from tests.properties.test_kill_anywhere import Killed

DAY_NS = 86_400 * 10**9
NEIGHBOURS = (
    RUN._replace(run_id=f"{RUN.run_id}0"),
    RUN._replace(run_id=f"{RUN.run_id}.parquet"),
    RUN._replace(tenant_id="acme2"),
)
UNTIL = datetime(2036, 11, 27, 12, tzinfo=UTC)


def lake_of(stage: MemoryStage) -> MemoryLake:
    assert stage.lake
    return stage.lake


def recorded(*runs: RunRef, locked: bool = False) -> MemoryStage:
    """Each in the lake, written more than once, and moved to another day."""
    stage = MemoryStage(lake=True)
    lake_of(stage).write_plain()
    if locked:
        lake_of(stage).s3.lock_until = UNTIL
    for run in runs or (RUN,):
        stage.ingest(build.body(build.started(), build.step(1), build.ended(), run=run))
        stage.drain()
        stage.ingest(build.body(build.step(2), build.started(T0 - DAY_NS), run=run))
        stage.drain()
        assert len(lake_of(stage).files_of(run)) == 3
        assert len(lake_of(stage).versions_of(run)) == 6
    return stage


def contents(stage: MemoryStage, run: RunRef) -> list[Any]:
    s3 = lake_of(stage).s3
    return [
        (key, s3.objects.get(key), s3.older.get(key)) for key in lake_of(stage).versions_of(run)
    ]


def test_no_version_is_left_under_any_day_and_neighbours_keep_theirs() -> None:
    stage = recorded(RUN, *NEIGHBOURS)
    before = [contents(stage, run) for run in NEIGHBOURS]
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert lake_of(stage).versions_of(RUN) == []
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.RUN]
    assert [contents(stage, run) for run in NEIGHBOURS] == before
    receipt = stage.api.read_deletion(RUN)
    assert receipt.status == "finished"
    assert receipt.locked_until is None
    assert receipt.objects == 6 + 2
    assert receipt.looks == 3  # the note goes with the second, and the third finds nothing


def test_a_file_that_came_late_is_found_by_the_look_after_the_quiet_time() -> None:
    """Of a writer that had read RUN before its tombstone was put: under a day that it named, also
    when the first look was over by then."""
    stage = recorded()
    stage.ingest(build.body(build.started(T0 - 3 * DAY_NS)))
    write = lake_of(stage).parts.write

    def delete_meanwhile(call: str, when: str) -> None:
        if (call, when) == ("s3.put_object", "before"):  # it has read all
            stage.calls.hook = lambda call, when: None
            stage.api.delete_run(RUN)
            assert stage.erase() == []
            assert lake_of(stage).versions_of(RUN) == []

    stage.calls.hook = delete_meanwhile
    write(RUN)
    assert lake_of(stage).files_of(RUN)
    stage.pass_time(QUIET_S)
    stage.erase_all()
    assert lake_of(stage).versions_of(RUN) == []
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.RUN]
    assert stage.api.read_deletion(RUN).status == "finished"


def test_the_note_stays_until_nobody_can_write_any_more() -> None:
    stage = recorded()
    stage.api.delete_run(RUN)
    assert stage.erase() == []
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.LAKE, keys.RUN]
    stage.pass_time(QUIET_S)
    assert stage.erase() == []
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.RUN]
    assert stage.api.read_deletion(RUN).status == "running"


def play(stage: MemoryStage, attempt: Callable[[Callable[[], Any]], None]) -> None:
    attempt(lambda: stage.api.delete_run(RUN) and None)
    while stage.sqs.queues.get(ERASURES):
        attempt(stage.erase)
        stage.pass_time(300)


def calls_of_a_clean_deletion(*, locked: bool) -> list[str]:
    stage = recorded(locked=locked)
    before = len(stage.calls.made)
    play(stage, lambda deliver: deliver())
    return stage.calls.made[before:]


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("how", ["kill", "error"])
def test_one_fault_anywhere_only_delays_it(how: str, locked: bool) -> None:
    for index, when in itertools.product(
        range(len(calls_of_a_clean_deletion(locked=locked))), ("before", "after")
    ):
        stage = recorded(locked=locked)
        seen = itertools.count(1)

        def fault(call: str, phase: str) -> None:
            if phase == when and next(seen) == index + 1:  # noqa: B023
                if how == "kill":
                    raise Killed(call)
                raise client_error(call, "InternalServerError")

        def attempt(deliver: Callable[[], Any]) -> None:
            try:
                failed = deliver()
            except (Killed, Unavailable):
                failed = True
            if failed:
                assert not deliver()

        stage.calls.hook = fault
        play(stage, attempt)
        assert lake_of(stage).files_of(RUN) == []
        assert bool(lake_of(stage).versions_of(RUN)) == locked
        receipt = stage.api.read_deletion(RUN)
        assert (receipt.status, receipt.locked_until is not None) == ("finished", locked)


def test_trouble_in_the_lake_holds_up_nothing_else() -> None:
    stage = recorded()
    lake_of(stage).s3.undeletable = set(lake_of(stage).files_of(RUN))
    stage.api.delete_run(RUN)
    assert len(stage.erase()) == 1
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.LAKE, keys.RUN]
    assert not stage.s3.objects


# -- runs that TTL has taken --------------------------------------------------------------------


def expire(stage: MemoryStage, run: RunRef = RUN) -> None:
    """What TTL leaves of a run whose files the lake still keeps."""
    for item in stage.items_of(run):
        if item[keys.SORT] != keys.LAKE:
            del stage.dynamodb.items[item[keys.PARTITION], item[keys.SORT]]


def test_a_run_that_has_expired_is_still_deleted_from_the_lake() -> None:
    stage = recorded(RUN, *NEIGHBOURS)
    expire(stage)
    before = [contents(stage, run) for run in NEIGHBOURS]
    asked = stage.api.delete_run(RUN)
    assert stage.api.delete_run(RUN) == asked
    stage.erase_all()
    assert lake_of(stage).versions_of(RUN) == []
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.RUN]
    assert [contents(stage, run) for run in NEIGHBOURS] == before
    receipt = stage.api.read_deletion(RUN)
    assert (receipt.status, receipt.items) == ("finished", 1)


def test_of_a_run_that_was_never_in_the_lake_there_is_nothing_to_delete() -> None:
    stage = recorded()
    expire(stage)
    with pytest.raises(NotFound):
        stage.api.delete_run(RUN._replace(run_id="another"))
    del stage.dynamodb.items[keys.run_partition(RUN), keys.LAKE]
    with pytest.raises(NotFound):
        stage.api.delete_run(RUN)
    assert not stage.items_of(RUN)


def test_its_tombstone_keeps_it_deleted() -> None:
    stage = recorded()
    expire(stage)
    stage.api.delete_run(RUN)
    assert stage.ingest(build.body(build.started(), build.step(1))) == []
    stage.erase_all()
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.RUN]


def test_one_that_is_opened_again_meanwhile_is_asked_for_again() -> None:
    stage = recorded()
    expire(stage)

    def open_meanwhile(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.get_item", "after"):  # the note was read
            stage.calls.hook = lambda call, when: None
            stage.ingest(build.body(build.started()))

    stage.calls.hook = open_meanwhile
    with pytest.raises(Unavailable, match="meanwhile"):
        stage.api.delete_run(RUN)
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert lake_of(stage).versions_of(RUN) == []


@pytest.mark.parametrize("locked", [False, True])
def test_notes_of_a_tenant_s_expired_runs_go_with_it(locked: bool) -> None:
    stage = recorded(RUN, *NEIGHBOURS, locked=locked)
    lake_of(stage).s3.most_versions = 2
    for run in (RUN, *NEIGHBOURS):
        expire(stage, run)
    lake = stage.erase_parts.erase.lake
    assert lake
    lake.notes.forget(lake.objects.runs_of_tenant("acme"))
    left = [run for run in (RUN, *NEIGHBOURS) if stage.items_of(run)]
    assert left == [run for run in NEIGHBOURS if run.tenant_id != "acme"]


# -- locks --------------------------------------------------------------------------------------


def test_what_a_lock_holds_is_hidden_and_the_receipt_says_until_when() -> None:
    stage = recorded(locked=True)
    held = dict(lake_of(stage).s3.locked)
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert lake_of(stage).files_of(RUN) == []
    kept = [
        version.version_id
        for versions in lake_of(stage).s3.older.values()
        for version in versions
        if version.content is not None
    ]
    assert sorted(kept) == sorted(held)
    receipt = stage.api.read_deletion(RUN)
    assert receipt.status == "finished"
    assert receipt.locked_until == "2036-11-27T12:00:00.000000000Z"
    assert [item[keys.SORT] for item in stage.items_of(RUN)] == [keys.RUN]


def test_what_is_hidden_stays_hidden_when_it_is_looked_at_again() -> None:
    """A marker that is taken away would show the version below."""
    stage = recorded(locked=True)
    stage.api.delete_run(RUN)
    stage.erase_all()
    before = contents(stage, RUN)
    for _ in range(2):
        stage.erase_parts.erase.erasures.request_erasure(RUN)
        stage.erase_all()
        assert contents(stage, RUN) == before


def test_the_longest_lock_counts_and_those_that_ended_go() -> None:
    stage = recorded(locked=True)
    s3 = lake_of(stage).s3
    ended = sorted(s3.locked)[:2]
    for version_id in ended:
        del s3.locked[version_id]
    s3.locked[max(s3.locked)] = UNTIL.replace(year=2040)
    stage.api.delete_run(RUN)
    stage.erase_all()
    left = {each.version_id for versions in s3.older.values() for each in versions}
    assert not set(ended) & left
    assert set(s3.locked) <= left
    locked_until = stage.api.read_deletion(RUN).locked_until
    assert locked_until is not None
    assert locked_until.startswith("2040-")


def test_a_refusal_that_no_lock_explains_is_no_end() -> None:
    stage = recorded()
    lake_of(stage).s3.undeletable = set(lake_of(stage).files_of(RUN))
    stage.api.delete_run(RUN)
    assert len(stage.erase()) == 1
    assert stage.api.read_deletion(RUN).status == "running"
    lake_of(stage).s3.undeletable = set()
    stage.erase_all()
    assert lake_of(stage).versions_of(RUN) == []


# -- tenants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("page", [1, 2, 1_000])
def test_all_that_the_lake_holds_of_a_tenant_goes(page: int, locked: bool) -> None:
    """Also what no run tells of any more, whatever S3's pages hold."""
    stage = recorded(RUN, *NEIGHBOURS, locked=locked)
    lake_of(stage).s3.most_versions = page
    before = contents(stage, NEIGHBOURS[2])
    assert stage.erase_parts.erase.lake
    taken = list(stage.erase_parts.erase.lake.objects.take_tenant("acme"))
    for run in (RUN, *NEIGHBOURS[:2]):
        assert lake_of(stage).files_of(run) == []
        assert bool(lake_of(stage).versions_of(run)) == locked
    assert contents(stage, NEIGHBOURS[2]) == before
    assert (max(one.locked_until or 0 for one in taken) > 0) == locked
    if not locked:
        assert sum(one.names for one in taken) == 3 * 6


def test_the_prefixes_of_a_tenant_end_where_its_id_ends() -> None:
    for prefix in lake_ports.objects_of_tenant("acme"):
        assert prefix.endswith("=acme/")
