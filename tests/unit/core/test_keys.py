"""Keys are injective, tenants apart, and readable by whoever lists objects (I8, F36)."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core import keys
from functions.core.keys import Pointer, RunRef

TENANTS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)
RUNS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", fullmatch=True)
STEPS = st.from_regex(r"[0-9]{19}-[0-9a-z]{8,11}", fullmatch=True)
REFS = st.builds(RunRef, TENANTS, RUNS)


@given(REFS, st.integers(0, 63))
def test_a_partition_key_reads_back(ref: RunRef, bucket: int) -> None:
    assert keys.parse_run_partition(keys.run_partition(ref, bucket)) == (ref, bucket)


@given(REFS, REFS, STEPS, st.integers(1, 64))
def test_no_key_or_object_of_one_run_is_anothers(
    one: RunRef, other: RunRef, step_id: str, buckets: int
) -> None:
    places = [
        {
            keys.step_item(ref, buckets, step_id),
            *(keys.item_of_run(ref, which) for which in ("RUN", "RESULT", "TOTALS")),
            keys.object_of_run(ref, step_id),
            keys.inbox_prefix(ref) + "0" * 64,
            keys.open_runs(ref),
            keys.runs_of_tenant(ref, 1),
        }
        for ref in (one, other)
    ]
    assert (places[0] & places[1] == set()) == (one != other)


@given(REFS, STEPS)
def test_an_object_lies_below_its_tenant_and_its_name_is_safe(ref: RunRef, step_id: str) -> None:
    key = keys.object_of_run(ref, f"{step_id}-0a1b2c3d")
    assert key.startswith(f"agent-runs/{ref.tenant_id}/{ref.run_id}/")
    assert re.fullmatch(r"[A-Za-z0-9/._:-]{1,512}", key)
    assert not {".", "..", ""} & set(key.split("/"))


@given(STEPS, st.integers(0, 64 * 2**20), st.integers(1, 64 * 2**20))
def test_a_pointer_reads_back_and_is_short(step_id: str, offset: int, length: int) -> None:
    pointer = Pointer(f"{step_id}-0a1b2c3d", offset, length)
    assert Pointer.parse(str(pointer)) == pointer
    assert len(str(pointer).encode()) <= 64


@given(STEPS, st.integers(1, 64))
def test_a_step_has_one_bucket_of_the_run(step_id: str, buckets: int) -> None:
    assert 0 <= keys.bucket_of(step_id, buckets) < buckets
    assert keys.bucket_of(step_id, buckets) == keys.bucket_of(step_id, buckets)


def test_steps_spread_over_all_buckets() -> None:
    step_ids = [f"{1_795_984_949_000_000_000 + n}-9f3a1c02" for n in range(2_000)]
    counts = Counter(keys.bucket_of(step_id, 64) for step_id in step_ids)
    assert len(counts) == 64
    assert max(counts.values()) < 3 * min(counts.values())


@pytest.mark.parametrize(
    "partition", ["TENANT#a", "PIPELINERUN#a", "PIPELINERUN##b", "PIPELINERUN#a#", "", "X#a#b"]
)
def test_what_is_no_partition_of_a_run_is_refused(partition: str) -> None:
    with pytest.raises(ValueError, match="not the partition key of a run"):
        keys.parse_run_partition(partition)
