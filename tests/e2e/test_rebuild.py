"""A run's items made anew from its objects alone, on the embedded AWS."""

import time
from dataclasses import replace
from itertools import batched
from typing import Any

import pytest

from functions.adapters.settings import LakeSettings
from functions.core import counts, keys
from functions.core.items import Item
from functions.core.keys import ItemKey
from functions.core.lake_ports import LakeNote
from functions.lake import handler
from runtally import wire
from tests import build, command_line
from tests.build import ended, log, started, step
from tests.e2e.pipeline import Pipeline
from tests.unit.local.terminal import strictly

pytestmark = pytest.mark.xdist_group("stage")

BUCKETS = 3
STEPS = [step(n, phase=f"phase {n % 3}", cost_usd=f"0.{n:03}", payload=n) for n in range(1, 31)]
DIFFERS = {"stored_at", "pointer", keys.EXPIRES, "at_total", "preview_full"}
EXACT = {"exact": True, "wrong": [], "dead_letters": 0}


def items_of(pipeline: Pipeline) -> dict[ItemKey, Item]:
    """Without what may differ between equal histories."""
    return {
        ItemKey(item[keys.PARTITION], item[keys.SORT]): _comparable(item)
        for bucket in range(BUCKETS)
        for kind in ("AGENT", "LOG", "PREVIEW", "R", "SUMMARY", "TOTALS")
        for item in pipeline.table.query(keys.run_partition(pipeline.ref, bucket), kind)
    }


def _comparable(item: Item) -> Item:
    kept = {
        name: value
        for name, value in item.items()
        if name not in DIFFERS and not name.startswith(counts.MARK_PREFIX)
    }
    return kept | ({"agents": sorted(kept["agents"])} if "agents" in kept else {})


def test_a_run_whose_items_are_lost_comes_back_from_its_objects(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """In buckets, with log lines, a result, another end, and steps that came late."""

    def send(*events: wire.Event) -> None:
        pipeline.send(build.body(*events, run=pipeline.ref, buckets=BUCKETS).encode())

    def rebuilt() -> Any:
        capsys.readouterr()
        command = ("rebuild", pipeline.ref.run_id, "--tenant", pipeline.ref.tenant_id, "--json")
        assert command_line.run(*command, stage=pipeline.stage, sleep=time.sleep) == 0
        return strictly(capsys.readouterr().out)

    send(started(attributes={"team": "a"}), *STEPS[:20], log(50, "one", "two"))
    send(*STEPS[15:25], ended(status="failed", result="later"))
    pipeline.summarised(len(STEPS[:25]))
    send(*STEPS[25:], ended(at=STEPS[-1].ended_at, result="earlier"))
    pipeline.summarised(len(STEPS))
    assert rebuilt()["checked"] == EXACT
    before = items_of(pipeline)
    kinds = {key.sort.partition("#")[0] for key in before}
    assert kinds == {"AGENT", "LOG", "PREVIEW", "RESULT", "RUN", "SUMMARY", "TOTALS"}
    for some in batched(before, 25, strict=False):
        pipeline.table.delete_many(some)
    assert items_of(pipeline) == {}
    answer = rebuilt()
    assert (answer["runs"], answer["steps"], answer["objects"]) == (1, len(STEPS), 3)
    assert answer["checked"] == EXACT
    assert items_of(pipeline) == before


def test_the_note_of_a_run_comes_back_from_its_files_in_the_lake(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under another day, too, from which the run has moved."""
    bucket, ref = pipeline.stage.bucket_name, pipeline.ref
    stage = replace(pipeline.stage, lake_url=f"s3://{bucket}/lake/", lake_retention_days=30)
    settings = LakeSettings(stage.table_name, bucket, 30)
    write = handler.lake_over(stage.dynamodb, stage.s3, settings, time.time_ns).write
    day_ns = 86_400 * 10**9
    pipeline.send(build.body(started(), *STEPS[:3], ended(), run=ref).encode())
    pipeline.summarised(3)
    assert write(ref)
    pipeline.send(build.body(started(build.T0 - day_ns), *STEPS[3:5], run=ref).encode())
    pipeline.summarised(5)
    assert write(ref)
    notes = write.source
    before = notes.load_note(ref)
    assert (len(before.days), before.calls) == (2, 5)
    notes.forget([ref])
    assert notes.load_note(ref) == LakeNote()
    capsys.readouterr()
    command = ("rebuild", ref.run_id, "--tenant", ref.tenant_id, "--no-wait", "--json")
    assert command_line.run(*command, stage=stage) == 0
    assert strictly(capsys.readouterr().out)["lake_notes"] == 1
    made = notes.load_note(ref)
    assert (set(made.days), made.calls, made.turn) == (set(before.days), 5, 1)
