"""Deletion whatever happens: a kill at any request, any neighbour, any size."""

import itertools
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.adapters.attributes import from_attributes
from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from tests import build
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.memory_stage import DEAD_LETTERS, ERASURES, RECOUNTS, MemoryStage
from tests.properties.test_kill_anywhere import Killed, When

STEPS = [build.step(n, payload={"n": n}) for n in range(1, 8)]
LATE = build.body(build.step(99), run=RUN, buckets=2)
NEIGHBOUR = RUN._replace(run_id=f"{RUN.run_id}0")


def record(stage: MemoryStage, run: RunRef, buckets: int = 2) -> None:
    stage.ingest(build.body(build.started(), run=run, buckets=buckets))
    body = build.body(*STEPS, build.log(50, "x"), build.ended(result="r"), run=run)
    stage.ingest_claimed(run, body.encode())
    stage.drain()


def everything_of(stage: MemoryStage, run: RunRef) -> tuple[list[Any], list[Any]]:
    """All items and all versions of all objects."""
    below = (keys.objects_of_run(run), keys.inbox_prefix(run))
    found: list[Any] = [(k, v) for k, v in stage.s3.objects.items() if k.startswith(below)]
    found += [(k, v) for k, v in stage.s3.older.items() if k.startswith(below)]
    return stage.items_of(run), sorted(found, key=str)


def erased(stage: MemoryStage, run: RunRef) -> bool:
    items, objects = everything_of(stage, run)
    return [item[keys.SORT] for item in items] == [keys.RUN] and not objects


# -- a kill before or after any AWS call ---------------------------------------------------------


def two_runs() -> MemoryStage:
    stage = MemoryStage(page_bytes=400)
    stage.s3.most_versions = 2
    record(stage, RUN)
    record(stage, NEIGHBOUR)
    return stage


def play(stage: MemoryStage, attempt: Callable[[Callable[[], Any]], None]) -> None:
    """From the request to the last look, with a late message in between."""
    attempt(lambda: stage.api.delete_run(RUN) and None)
    attempt(lambda: stage.ingest(LATE))
    while stage.sqs.queues.get(ERASURES):
        attempt(stage.erase)
        stage.pass_time(300)


def calls_of_a_clean_deletion() -> list[str]:
    stage = two_runs()
    before = len(stage.calls.made)
    play(stage, lambda deliver: deliver())
    return stage.calls.made[before:]


CLEAN = calls_of_a_clean_deletion()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["kill", "error"])
@pytest.mark.parametrize("index", range(len(CLEAN)), ids=lambda n: f"{n}-{CLEAN[n]}")
def test_one_fault_only_delays_it(index: int, how: str, when: When) -> None:
    stage = two_runs()
    neighbour = everything_of(stage, NEIGHBOUR)
    items, objects = everything_of(stage, RUN)
    seen = 0

    def fault(call: str, phase: str) -> None:
        nonlocal seen
        if phase == when:
            seen += 1
            if seen == index + 1:
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
    assert seen > index
    assert erased(stage, RUN)
    assert everything_of(stage, NEIGHBOUR) == neighbour
    receipt = stage.api.read_deletion(RUN)
    assert receipt.status == "finished"
    assert receipt.looks >= 2
    # Short, at most, by the part under way.
    assert len(items) - 1 - 25 <= receipt.items <= len(items) - 1
    assert len(objects) - 2 <= receipt.objects <= len(objects)
    assert receipt.objects <= receipt.versions <= len(objects)
    for queue in (DEAD_LETTERS, RECOUNTS):
        assert not stage.sqs.queues.get(queue)


# -- neighbours ----------------------------------------------------------------------------------

_STARTS = st.sampled_from("aA1Rr")
_RESTS = st.text(st.sampled_from("aA10Rr._-:~" + string.digits[:2]), max_size=3)
_RUN_IDS = st.builds(str.__add__, _STARTS, _RESTS).map(lambda text: text.replace("~", "-"))
_TENANT_IDS = _RUN_IDS.map(lambda text: text.replace(":", "."))
_REFS = st.builds(RunRef, _TENANT_IDS, _RUN_IDS)


@settings(max_examples=60, deadline=None)
@given(
    refs=st.lists(_REFS, min_size=2, max_size=5, unique=True),
    buckets=st.integers(1, 12),
    data=st.data(),
)
def test_a_deletion_touches_nothing_of_any_neighbour(
    refs: list[RunRef], buckets: int, data: st.DataObject
) -> None:
    """Ids that begin alike, hold each other or differ by case alone; tenants likewise (I8)."""
    victim = data.draw(st.sampled_from(refs))
    longer = data.draw(st.sampled_from(("0", "a", ".", "-1", ":1")))
    hostile = [
        victim._replace(run_id=victim.run_id + longer),
        victim._replace(tenant_id=victim.tenant_id + longer.replace(":", "-")),
        RunRef(victim.run_id.replace(":", "."), victim.tenant_id),
    ]
    stage = MemoryStage()
    every = list(dict.fromkeys([*refs, *hostile]))
    for ref in every:
        record(stage, ref, buckets)
    others = [ref for ref in every if ref != victim]
    before = [everything_of(stage, ref) for ref in others]
    assert all(len(items) > 10 and len(objects) > 2 for items, objects in before)
    stage.api.delete_run(victim)
    stage.erase_all()
    assert erased(stage, victim)
    assert [everything_of(stage, ref) for ref in others] == before


def test_the_prefixes_of_a_run_end_where_its_id_ends() -> None:
    for prefix in (keys.objects_of_run(RUN), keys.inbox_prefix(RUN)):
        assert prefix.endswith(f"/{RUN.run_id}/")


# -- large runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "buckets"),
    [(5_000, 4), pytest.param(100_000, 8, marks=[pytest.mark.large, pytest.mark.timeout(1_200)])],
)
def test_any_number_of_steps_is_erased_in_bounded_invocations(steps: int, buckets: int) -> None:
    """No invocation deletes more than its time allows; each asks for the next."""
    stage = MemoryStage(retention_days=3_650)
    for batch in itertools.batched(range(1, steps + 1), 1_000, strict=False):
        packs = itertools.batched((build.step(n) for n in batch), 100, strict=False)
        assert stage.ingest(*(build.body(*pack, buckets=buckets) for pack in packs)) == []
    items, objects = everything_of(stage, RUN)
    stage.dynamodb.stream.clear()
    stage.api.delete_run(RUN)
    invocations = 0
    while stage.api.read_deletion(RUN).status == "running":
        parts = itertools.count(1)
        calls = len(stage.calls.made)
        assert stage.erase(late=lambda: next(parts) >= 3) == []  # noqa: B023
        assert len(stage.calls.made) - calls < 200
        invocations += 1
        stage.pass_time(60)
    receipt = stage.api.read_deletion(RUN)
    assert erased(stage, RUN)
    assert (receipt.items, receipt.objects) == (len(items) - 1, len(objects))
    assert invocations >= steps / 3_000


def test_a_deleted_run_is_in_no_index() -> None:
    stage = two_runs()
    stage.api.delete_run(RUN)
    stage.erase_all()
    tombstone = from_attributes(stage.dynamodb.items[keys.run_partition(RUN), keys.RUN])
    assert not [name for name in tombstone if name.startswith("GSI")]
