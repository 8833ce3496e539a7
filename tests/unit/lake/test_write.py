"""The lake's function: stream records in, Parquet out, read back by DuckDB."""

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from functions.core import keys, lake, lake_ports
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.lake import handler
from tests import build, invariants
from tests.build import RUN, T0
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.memory_lake import KEPT_DAYS, MemoryLake, passes_filter
from tests.memory_stage import MemoryStage
from tests.telling import listening

OTHER = RunRef("acme", "run-2")
DAY = "2026-11-29"
DAY_NS = 86_400 * 10**9


def recorded(run: RunRef = RUN, steps: int = 5, buckets: int = 2) -> MemoryStage:
    stage = MemoryStage(lake=True)
    record(stage, run, steps, buckets)
    return stage


def record(stage: MemoryStage, run: RunRef = RUN, steps: int = 5, buckets: int = 2) -> None:
    many = [build.step(n, phase="plan", cost_usd=f"0.{n}") for n in range(1, steps + 1)]
    body = build.body(build.started(), *many, build.ended(), run=run, buckets=buckets)
    assert stage.ingest(body) == []
    stage.summarize(stage.new_stream_records())


def lake_of(stage: MemoryStage) -> MemoryLake:
    assert stage.lake
    return stage.lake


def files(run: RunRef = RUN, day: str = DAY) -> list[str]:
    return sorted(lake_ports.objects_of_run(run, day))


def test_an_ended_run_is_in_all_three_tables() -> None:
    stage = recorded()
    stage.write_lake()
    assert lake_of(stage).files_of(RUN) == files()
    (row,) = lake_of(stage).rows("runs", RUN)
    assert (row["agents_total"], row["cost_usd_total"]) == (5, Decimal("1.5"))
    assert len(lake_of(stage).rows("calls", RUN)) == 5
    assert [row["phase"] for row in lake_of(stage).rows("phases", RUN)] == ["plan"]
    invariants.lake_equals_summary(stage, RUN)


def test_a_batch_as_lambda_delivers_it_writes_each_run_once() -> None:
    stage = recorded()
    batch = event("lake/run-ended-and-summary")
    assert len(batch["Records"]) == 2
    stage.calls.made.clear()
    answer = handler.process(batch, lake_of(stage).parts, lambda: False)
    assert answer == {"batchItemFailures": []}
    assert stage.calls.made.count("s3.put_object") == len(lake.TABLES)
    assert all(map(passes_filter, batch["Records"]))


def test_writing_again_changes_no_byte_for_readers() -> None:
    stage = recorded()
    stage.write_lake()
    before = dict(lake_of(stage).s3.objects)
    request = {"tenant_id": RUN.tenant_id, "run_id": RUN.run_id}
    assert handler.write_again(request, lake_of(stage).parts) == {"rows": 5 + 1 + 1}
    assert lake_of(stage).s3.objects == before


def test_a_late_step_and_an_earlier_end_replace_the_files() -> None:
    stage = recorded()
    stage.write_lake()
    stage.ingest(build.body(build.step(9, cost_usd="7")), build.body(build.ended(T0, "failed")))
    stage.drain()
    (row,) = lake_of(stage).rows("runs", RUN)
    assert (row["agents_total"], row["status"]) == (6, "failed")
    invariants.lake_equals_summary(stage, RUN)


def test_an_end_that_came_first_is_mended_by_an_earlier_end_alone() -> None:
    """SUMMARY stays as it was: only RUN tells."""
    stage = recorded()
    stage.write_lake()
    summary = stage.item(RUN, keys.SUMMARY)
    stage.ingest(build.body(build.ended(T0 + 1, "cancelled")))
    stage.drain()
    assert stage.item(RUN, keys.SUMMARY) == summary
    assert lake_of(stage).rows("runs", RUN)[0]["status"] == "cancelled"


def test_an_earlier_start_moves_the_files_to_its_day() -> None:
    stage = recorded()
    stage.write_lake()
    stage.ingest(build.body(build.started(T0 - DAY_NS)))
    stage.drain()
    assert lake_of(stage).files_of(RUN) == files(day="2026-11-28")
    note = stage.item(RUN, keys.LAKE)
    assert note is not None
    assert note["days"] == [DAY, "2026-11-28"]  # older versions lie there
    invariants.lake_equals_summary(stage, RUN)


@pytest.mark.parametrize("what", ["open", "gone", "deleted"])
def test_of_a_run_that_has_not_ended_or_is_no_more_nothing_is_written(what: str) -> None:
    stage = MemoryStage(lake=True)
    if what != "gone":
        stage.ingest(build.body(build.started(), build.step(1)))
    if what == "deleted":
        stage.ingest(build.body(build.ended()))
        stage.api.delete_run(RUN)
    before = dict(stage.dynamodb.items)
    request = {"tenant_id": RUN.tenant_id, "run_id": RUN.run_id}
    assert handler.write_again(request, lake_of(stage).parts) == {"rows": 0}
    assert not lake_of(stage).versions_of(RUN)
    assert stage.dynamodb.items == before


def test_a_run_of_which_calls_have_expired_stays_whole_in_the_lake() -> None:
    """A message that comes late lets RUN live longer than the calls that came first."""
    stage = recorded()
    stage.drain()
    before = dict(lake_of(stage).s3.objects)
    step = stage.items_of(RUN, keys.STEP_PREFIX)[0]
    del stage.dynamodb.items[step["PK"], step["SK"]]
    stage.ingest(build.body(build.ended(T0 + 1, "failed")))
    stage.drain()
    assert lake_of(stage).s3.objects == before


def test_a_call_that_goes_between_the_two_looks_leaves_the_files_as_they_were() -> None:
    """Deleted meanwhile, or expired: rows of some calls would be no run."""
    stage = recorded()
    stage.drain()
    before = dict(lake_of(stage).s3.objects)

    def take_one(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.put_item", "after"):  # the note: all steps were read
            stage.calls.hook = lambda call, when: None
            step = stage.items_of(RUN, keys.STEP_PREFIX)[-1]
            del stage.dynamodb.items[step["PK"], step["SK"]]

    stage.calls.hook = take_one
    assert lake_of(stage).parts.write(RUN) is None
    assert lake_of(stage).s3.objects == before


def test_calls_that_did_not_come_back_cost_the_lake_none() -> None:
    """A rebuilt run counts what came back, and its summary too."""
    stage = recorded()
    stage.drain()
    before = dict(lake_of(stage).s3.objects)
    for item in stage.items_of(RUN):
        if item["SK"] != keys.LAKE:
            del stage.dynamodb.items[item["PK"], item["SK"]]
    record(stage, steps=4)
    stage.drain()
    assert lake_of(stage).s3.objects == before
    record(stage, steps=6)
    stage.drain()
    (row,) = lake_of(stage).rows("runs", RUN)
    assert row["agents_total"] == 6


def test_a_run_is_in_the_table_of_runs_under_one_day_at_any_moment() -> None:
    stage = recorded()
    stage.drain()
    stage.ingest(build.body(build.started(T0 - DAY_NS)))

    def once(call: str, when: str) -> None:
        assert len([key for key in lake_of(stage).files_of(RUN) if "/runs/" in key]) <= 1

    stage.calls.hook = once
    stage.drain()
    assert lake_of(stage).files_of(RUN) == files(day="2026-11-28")


def test_what_is_there_already_is_not_put_again() -> None:
    """Its end and its summary may come apart, and a batch again: each put would be a version."""
    stage = recorded()
    records = lake_of(stage).new_stream_records()
    assert lake_of(stage).deliver(records) == []
    puts = stage.calls.made.count("s3.put_object")
    for record in records:
        assert lake_of(stage).deliver([record]) == []
    assert stage.calls.made.count("s3.put_object") == puts


def test_runs_of_a_batch_are_written_at_once_and_each_failure_is_its_own() -> None:
    stage = recorded()
    others = [RUN._replace(run_id=f"other-{n}") for n in range(6)]
    for run in others:
        record(stage, run)
    records = lake_of(stage).new_stream_records()
    with ThreadPoolExecutor(3) as pool:
        lake_of(stage).parts = replace(lake_of(stage).parts, spread=pool.map)
        lake_of(stage).s3.refused = {files(others[1])[0]}
        (resume_at,) = lake_of(stage).deliver(records)
        assert [lake_of(stage).files_of(run) == files(run) for run in others] == [
            run != others[1] for run in others
        ]
        position = [r["dynamodb"]["SequenceNumber"] for r in records].index(resume_at)
        assert records[position]["dynamodb"]["Keys"]["PK"]["S"] == keys.run_partition(others[1])
        lake_of(stage).s3.refused = set()
        assert lake_of(stage).deliver(records[position:]) == []
    for run in others:
        invariants.lake_equals_summary(stage, run)


def test_nothing_is_written_before_the_summary_is_there() -> None:
    stage = MemoryStage(lake=True)
    stage.ingest(build.body(build.started(), build.step(1), build.ended()))
    stage.write_lake()
    assert not lake_of(stage).versions_of(RUN)
    stage.drain()
    invariants.lake_equals_summary(stage, RUN)


def test_the_note_lasts_as_long_as_the_files_and_never_less() -> None:
    stage = recorded()
    written_at = stage.now_ns // 10**9
    stage.write_lake()
    note = stage.item(RUN, keys.LAKE)
    assert note is not None
    lasts_days = (note[keys.EXPIRES] - written_at) // 86_400
    assert lasts_days == KEPT_DAYS + 730
    shorter = replace(lake_of(stage).parts.write, retention_days=30)
    assert shorter(RUN)
    again = stage.item(RUN, keys.LAKE)
    assert again == note | {"turn": note["turn"] + 1}


def test_a_run_that_fails_costs_the_others_nothing_and_comes_again() -> None:
    stage = recorded()
    record(stage, OTHER)
    records = lake_of(stage).new_stream_records()

    def fail_first(call: str, when: str) -> None:
        if call == "s3.put_object":
            stage.calls.hook = lambda call, when: None
            raise client_error(call, "SlowDown")

    stage.calls.hook = fail_first
    resume_at = lake_of(stage).deliver(records)
    assert resume_at == [records[0]["dynamodb"]["SequenceNumber"]]
    assert lake_of(stage).files_of(OTHER) == files(OTHER)
    assert lake_of(stage).deliver(records) == []
    invariants.lake_equals_summary(stage, RUN)


def test_what_there_is_no_time_for_comes_again_but_something_is_always_done() -> None:
    stage = recorded()
    record(stage, OTHER)
    records = lake_of(stage).new_stream_records()
    (resume_at,) = lake_of(stage).deliver(records, late=lambda: True)
    position = [r["dynamodb"]["SequenceNumber"] for r in records].index(resume_at)
    assert records[position]["dynamodb"]["Keys"]["PK"]["S"] == keys.run_partition(OTHER)
    assert lake_of(stage).files_of(RUN)
    assert not lake_of(stage).files_of(OTHER)
    assert lake_of(stage).deliver(records[position:], late=lambda: True) == []
    invariants.lake_equals_summary(stage, OTHER)


def test_a_record_that_cannot_be_read_stops_the_batch_before_it() -> None:
    stage = recorded()
    record(stage, OTHER)
    records: list[dict[str, Any]] = json.loads(json.dumps(lake_of(stage).new_stream_records()))
    records[2]["dynamodb"]["Keys"]["PK"]["S"] = "TENANT#acme"
    assert lake_of(stage).deliver(records) == [records[2]["dynamodb"]["SequenceNumber"]]
    assert lake_of(stage).files_of(RUN)


def test_whoever_is_always_overtaken_gives_up() -> None:
    stage = recorded()
    table = stage.dynamodb

    def overtake(call: str, when: str) -> None:
        if call == "s3.head_object" and when == "after":
            note = table.items[keys.run_partition(RUN), keys.LAKE]
            note["turn"] = {"N": str(int(note["turn"]["N"]) + 1)}

    stage.calls.hook = overtake
    with pytest.raises(Unavailable, match="all the time"):
        lake_of(stage).parts.write(RUN)


def test_files_of_a_tenant_lie_below_its_prefixes_and_a_run_named_like_a_file_is_another() -> None:
    prefixes = lake_ports.objects_of_tenant("acme")
    for table, prefix in zip(lake.TABLES, prefixes, strict=True):
        assert lake_ports.object_of_run(table, RUN, DAY).startswith(prefix)
        assert prefix.endswith("/tenant_id=acme/")
    timed = RUN._replace(run_id="2026-11-30T12:00:00")
    for key in files(timed):
        assert ":" not in key
        assert lake_ports.parse_object(key) == (timed, DAY)
    twin = RUN._replace(run_id=f"{RUN.run_id}.parquet")
    assert not set(files(twin)) & set(files())


def test_no_log_line_repeats_what_was_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is wrong with a row: the words of an exception are not AWS's."""
    secret = "CANARY-QUILL"
    with listening(monkeypatch, capsys, "runtally/test"):
        stage = MemoryStage(lake=True)
        step = build.step(1, name=secret, error=secret, attributes={secret: secret})
        stage.ingest(build.body(build.started(attributes={secret: secret}), step, build.ended()))
        stage.summarize(stage.new_stream_records())
        records = lake_of(stage).new_stream_records()
        capsys.readouterr()

        def fail(call: str, when: str) -> None:
            if call == "s3.put_object":
                raise ValueError(secret)

        stage.calls.hook = fail
        logger = logging.getLogger("lake")
        (output,) = (each for each in logger.handlers if type(each) is logging.StreamHandler)
        monkeypatch.setattr(output, "stream", sys.stdout)
        before = logger.level
        logger.setLevel("DEBUG")
        assert lake_of(stage).deliver(records)
        logger.setLevel(before)
        printed = capsys.readouterr()
    assert "run could not be written" in printed.out
    assert secret not in printed.out + printed.err
