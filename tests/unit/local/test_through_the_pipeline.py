"""Samples and public trajectories, once through the handlers: what stands there adds up."""

from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from functions.core import keys
from functions.core.keys import RunRef
from local import recordings, samples, trajectories
from runtally import wire
from tests.memory_stage import NOW_NS, MemoryStage

TRAJECTORIES = Path(__file__).parents[4] / "shared" / "samples" / "trajectories"


def through_the_pipeline(messages: list[bytes]) -> tuple[MemoryStage, RunRef]:
    stage = MemoryStage()
    for start in range(0, len(messages), 10):
        assert stage.ingest(*messages[start : start + 10]) == []
    stage.drain()
    assert stage.dead_letters() == []
    head = wire.open_message(messages[0].decode()).head
    return stage, RunRef(head.tenant_id, head.run_id or "")


def assert_adds_up(stage: MemoryStage, run: RunRef, messages: list[bytes]) -> None:
    """TOTALS, SUMMARY and the steps behind it equal the sums over the bodies, to the last digit."""
    expected = asdict(recordings.expected_totals(messages))
    assert expected.pop("run_id") == run.run_id
    assert (stage.item(run, keys.RUN) or {})["status"] == expected.pop("status")
    for sort in (keys.TOTALS, keys.SUMMARY):
        item = stage.item(run, sort) or {}
        assert {name: item.get(name, 0) for name in expected} == expected
    phases = (stage.item(run, keys.SUMMARY) or {})["phases_summary"]
    assert sum(phase["calls"] for phase in phases) == expected["agents_total"]
    assert sum(phase["cost_usd"] for phase in phases) == expected["cost_usd_total"]


def payloads_read_back(stage: MemoryStage, run: RunRef) -> list[bytes]:
    """The payload behind each step's pointer, in step order."""
    lines = [stage.line_behind(run, i["pointer"]) for i in stage.items_of(run, keys.STEP_PREFIX)]
    steps = [msgspec.json.decode(line, type=wire.Step) for line in lines]
    return [bytes(step.payload) for step in steps if isinstance(step.payload, Raw)]


@pytest.mark.parametrize("program", samples.PROGRAMS)
def test_a_sample_adds_up(program: str) -> None:
    for recording in recordings.load(samples.RECORDINGS / f"{program}.jsonl.gz"):
        messages = recordings.retime(recording.messages, NOW_NS)
        stage, run = through_the_pipeline(messages)
        assert_adds_up(stage, run, messages)


@pytest.mark.parametrize(
    "name",
    [
        "mini-swe-agent.sqlfluff-1733.traj.json",
        "swe-agent.pydicom-1458.traj",
        "swe-agent.marshmallow-1867.function_calling.traj",
        "tau-bench.gpt-4o-airline.subset.json",
        "who-and-when.hand-crafted-56.json",
    ],
)
def test_a_public_trajectory_adds_up_and_reads_back(name: str) -> None:
    path = TRAJECTORIES / name
    if not path.exists():
        pytest.skip(f"the public trajectory {name} is not on this machine")
    for recorded in trajectories.load(path):
        messages = recordings.retime(recorded.messages(), NOW_NS)
        stage, run = through_the_pipeline(messages)
        assert_adds_up(stage, run, messages)
        steps = [event for event in recorded.events if isinstance(event, wire.Step)]
        read = payloads_read_back(stage, run)
        assert read == [bytes(step.payload) for step in steps if isinstance(step.payload, Raw)]
        assert sum(map(len, read)) == recorded.expected.payload_bytes
