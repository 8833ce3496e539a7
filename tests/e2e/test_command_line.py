"""The command line as a person or a script runs it: a process, from arguments to exit code."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local.paths import BUILD, RECORDINGS
from local.recordings import expected_totals, load
from local.stage import Running

pytestmark = [pytest.mark.xdist_group("command line"), pytest.mark.timeout(600)]

RUNTALLY = Path(sys.executable).parent / "runtally"


def runtally(
    *arguments: str | Path, state: Path, code: int = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(  # noqa: S603 - our own command line
        [RUNTALLY, *arguments],
        env=os.environ | {"RUNTALLY_LOCAL_STATE": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_the_demo_shows_every_sample_run_as_its_recording_adds_up(tmp_path: Path) -> None:
    shown = runtally("demo", "--json", state=tmp_path / "state.json").stdout.splitlines()
    answer = json.loads(shown[-1])
    runs = {run["run_id"]: run for run in answer["runs"]}
    recorded = [run for file in RECORDINGS.glob("*.jsonl.gz") for run in load(file)]
    assert len(runs) == len(recorded) > 0
    for recording in recorded:
        expected = expected_totals(recording.messages)
        run = runs[expected.run_id]
        assert run["status"] == expected.status
        assert run["agents_total"] == expected.agents_total
        assert Decimal(run["cost_usd_total"]) == expected.cost_usd_total
        assert sum(phase["calls"] for phase in run["phases"]) == expected.agents_total
        assert any(expected.run_id in line for line in shown[:-1])
    assert sum(line.startswith("$ runtally ") for line in shown) == 2
    assert "Failed calls: 6" in "\n".join(line.strip() for line in shown)
    assert answer["seconds"] > 0
    assert 1 <= answer["write_units_per_step"] < 2
    shared_budget_is_told_exactly(answer["shared_budget"], shown)


def shared_budget_is_told_exactly(shared: dict[str, Any], shown: list[str]) -> None:
    """The embedded server is among the project's packages, so it is there."""
    assert len(shared["workers"]) == 8
    assert sum(worker["spent"] for worker in shared["workers"]) == shared["spent"]
    assert Decimal(shared["cost_usd_total"]) * 10**9 == shared["spent"] <= shared["limit"]
    refused = max(worker["refused"] for worker in shared["workers"])
    assert refused > 0
    assert shared["left"] < shared["at_once"] * refused, "nobody stopped before it was spent"
    assert 2 <= shared["most_at_once"] <= shared["at_once"]
    assert any(line.startswith("worker-8 ") for line in shown)


def test_a_stage_comes_up_takes_runs_and_goes_down(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    sample = RECORDINGS / "cancelled.jsonl.gz"
    runtally("replay", sample, state=state, code=1)
    try:
        assert "is up." in runtally("up", state=state).stdout
        assert "up already" in runtally("up", state=state).stdout
        running = Running.load(state)
        assert running is not None
        again = ("--run-id", "again", "--tenant", "acme", "--now", "--wait")
        assert "again" in runtally("replay", sample, *again, state=state).stdout
        runtally("replay", BUILD / "no-such-file.jsonl", state=state, code=1)
        assert "again" in runtally("runs", state=state).stdout  # acme is the only tenant
        assert "cancelled again" in runtally("show", "again", state=state).stdout
        assert "no such run" in runtally("show", "other", state=state, code=1).stderr
        with subprocess.Popen(  # noqa: S603 - our own command line
            [RUNTALLY, "tail", "again", "--json"],
            env=os.environ | {"RUNTALLY_LOCAL_STATE": str(state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as tail:
            assert tail.stdout is not None
            tail.stdout.close()  # as `head` does
            assert tail.stderr is not None
            assert b"Traceback" not in tail.stderr.read()
    finally:
        assert "is down" in runtally("down", state=state).stdout
    assert "no stage" in runtally("down", state=state).stdout
    assert not running.folder.exists()
