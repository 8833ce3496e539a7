"""A shipped sample through the deployed pipeline, exported, written to a lake, and asked about."""

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from functions.adapters.settings import LakeSettings
from functions.core import keys
from functions.lake import handler
from local import replay, waiting
from local.paths import RECORDINGS
from local.reading import register
from local.sending import send
from local.stage import Stage
from tests import command_line
from tests.e2e.pipeline import WITHIN_S
from tests.unit.local.terminal import strictly

pytestmark = pytest.mark.xdist_group("stage")

SUMS = (
    "SELECT any_value(status) AS status, sum(agents_total) AS agents_total,"
    " sum(cost_usd_total) AS cost_usd_total, (SELECT count(*) FROM calls) AS calls,"
    " (SELECT sum(cost_usd) FROM calls) AS cost_usd, (SELECT sum(calls) FROM phases) AS by_phase"
    " FROM runs"
)


def test_what_is_exported_and_what_the_lake_s_function_writes_to_s3_say_the_same(
    stage: Stage,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RUNTALLY_STAGE", raising=False)

    def typed(*arguments: str) -> Any:
        assert not command_line.run(*arguments, "--json", stage=stage)
        return strictly(capsys.readouterr().out)

    sample, *_ = replay.load(RECORDINGS / "bugfix.jsonl.gz")
    sample = replay.addressed(replay.ending_now(sample), "exported", None)
    expected = replay.expected(sample)
    register(stage, ["exported"])
    send(stage, [sample])
    ref = replay.ref_of(sample)
    waiting.until_summarised(stage, [(ref, expected.agents_total)], WITHIN_S)

    folder = tmp_path / "lake"
    command = ("export", "--tenant", "exported", "--into", str(folder))
    report = typed(*command)
    assert (report["exported"], report["calls"]) == (1, expected.agents_total)
    assert typed(*command)["unchanged"] == 1
    (row,) = typed("query", SUMS, "--in", str(folder))
    assert row["status"] == expected.status
    assert row["agents_total"] == row["calls"] == row["by_phase"] == expected.agents_total
    assert Decimal(row["cost_usd_total"]) == Decimal(row["cost_usd"]) == expected.cost_usd_total

    settings = LakeSettings(stage.table_name, stage.bucket_name, retention_days=1)
    parts = handler.lake_over(stage.dynamodb, stage.s3, settings, time.time_ns)
    assert handler.write_again(ref._asdict(), parts)["rows"] > expected.agents_total
    lake = ("--lake", f"s3://{stage.bucket_name}/{keys.LAKE_OBJECTS}")
    assert typed("query", SUMS, *lake) == [row]
    assert typed("query", SUMS, *lake) == [row]
    (dearest, *_) = typed("query", "--named", "dearest-prompts", *lake)
    assert dearest["run_id"] == ref.run_id
