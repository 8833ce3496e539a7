"""What writes the lake: which records reach it, what it finds around it, and what it tells."""

import json
from typing import Any

import pytest

from cdk.bundle import ROOT
from functions.core import keys
from tests import build
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.infra import metric_maths
from tests.infra.assembly import (
    Assembly,
    Properties,
    Template,
    synthesise,
    with_lake,
)
from tests.infra.event_pattern import passes
from tests.infra.lake.stacks import PLAIN, only, plain
from tests.infra.metric_maths import fires
from tests.infra.test_filters import UNWANTED, WANTED, run, stream_record
from tests.infra.test_observability import series_on_dashboards
from tests.memory_stage import MemoryStage
from tests.telling import listening

DAY = 86_400


# -- the function -------------------------------------------------------------------------------


def mapping(stack: Template) -> Properties:
    return only(stack, "AWS::Lambda::EventSourceMapping")


def test_a_poisoned_record_neither_blocks_the_stream_nor_disappears(stack: Template) -> None:
    stream = mapping(stack)
    assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert stream["BisectBatchOnFunctionError"] is True
    assert 0 < stream["MaximumRetryAttempts"] <= 20
    assert 0 < stream["MaximumRecordAgeInSeconds"] < DAY
    assert stream["ParallelizationFactor"] == 1
    assert stream["MaximumBatchingWindowInSeconds"] == 30
    destination = stream["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    queue = stack["Resources"][destination]
    assert queue["Type"] == "AWS::SQS::Queue"
    assert queue["Properties"]["MessageRetentionPeriod"] == 14 * DAY
    assert queue["Properties"]["SqsManagedSseEnabled"] is True


def test_the_stream_has_no_more_readers_than_it_takes(assembly: Assembly) -> None:
    """Two, says AWS: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html"""
    mappings = assembly.resources("AWS::Lambda::EventSourceMapping")
    assert [path for path, each in mappings.items() if "StartingPosition" in each] == [
        "Summarize/Function/Stream",
        "Lake/Function/Stream",
    ]


@pytest.fixture(scope="module")
def patterns() -> list[dict[str, Any]]:
    filters = mapping(plain())["FilterCriteria"]["Filters"]
    return [json.loads(each["Pattern"]) for each in filters]


SUMMARY = {"agents_total": {"N": "5"}}


def test_summaries_pass_and_what_ended_runs_tell_of_themselves(
    patterns: list[dict[str, Any]],
) -> None:
    for event_name in ("INSERT", "MODIFY"):
        assert passes(stream_record(event_name, keys.SUMMARY, **SUMMARY), patterns)
    for status in ("succeeded", "failed", "cancelled"):
        assert passes(run("MODIFY", status), patterns)


def test_nothing_else_passes_not_even_what_the_function_itself_writes(
    patterns: list[dict[str, Any]],
) -> None:
    unwanted = {name: record for name, record in UNWANTED.items() if "summary" not in name}
    assert len(unwanted) == len(UNWANTED) - 2
    for name, record in {**unwanted, "a new step": WANTED["a new step"]}.items():
        assert not passes(record, patterns), name
    for event_name in ("INSERT", "MODIFY"):
        assert not passes(stream_record(event_name, keys.LAKE), patterns)
    assert not passes(stream_record("REMOVE", keys.SUMMARY), patterns)


def test_an_event_that_it_is_tested_with_would_reach_it(patterns: list[dict[str, Any]]) -> None:
    for file in (ROOT / "events" / "lake").glob("*.json"):
        for record in json.loads(file.read_text())["Records"]:
            assert passes(record, patterns)


def test_it_finds_its_surroundings_and_ends_before_a_deletion_s_last_look(
    assembly: Assembly,
) -> None:
    functions = assembly.resources("AWS::Lambda::Function")
    function, erase = functions["Lake/Function"], functions["Erase/Function"]
    found = function["Environment"]["Variables"]
    assert {"RUNTALLY_TABLE", "RUNTALLY_LAKE_BUCKET"} < set(found)
    assert "RUNTALLY_LAKE_BUCKET" in erase["Environment"]["Variables"]
    quiet_s = int(erase["Environment"]["Variables"]["RUNTALLY_QUIET_S"])
    assert function["Timeout"] + 60 <= quiet_s


# -- what is told -------------------------------------------------------------------------------


def test_it_is_watched() -> None:
    alarms = with_lake("dev", PLAIN).resources("AWS::CloudWatch::Alarm")
    added = set(alarms) - set(synthesise("dev").resources("AWS::CloudWatch::Alarm"))
    assert added == {"LakeBehind", "LakeErrors", "LakeDeadLetters"}
    behind = alarms["LakeBehind"]
    (age,) = metric_maths.series_in(behind)
    hour = 3_600_000.0
    assert fires(behind, 2 * [{age: [hour + 1]}])
    assert not fires(behind, [{age: [hour + 1]}, {age: [hour]}])
    (letters,) = metric_maths.series_in(alarms["LakeDeadLetters"])
    assert fires(alarms["LakeDeadLetters"], [{letters: [1.0]}])
    runbook = (ROOT / "docs" / "operations.md").read_text()
    for name in ("LakeBehind", "LakeDeadLetters", "LakeErrors"):
        anchor = alarms[name]["AlarmDescription"].partition("#")[2]
        assert f"(#{anchor}) |" in runbook
    assert "\n## Lake behind\n" in runbook


def test_what_it_publishes_is_on_a_dashboard_and_the_reverse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(monkeypatch, capsys, "runtally/dev") as (_, told):
        stage = MemoryStage(lake=True)
        assert stage.lake
        stage.ingest(build.body(build.started(), build.step(1), build.ended()))
        stage.summarize(stage.new_stream_records())
        records = stage.lake.new_stream_records()

        def overtake_then_fail(call: str, when: str) -> None:
            if (call, when) == ("s3.put_object", "before"):
                raise client_error(call, "SlowDown")
            if (call, when) == ("dynamodb.query", "before"):
                note: dict[str, dict[str, Any]] = {
                    "turn": {"N": "7"},
                    "days": {"L": []},
                    "expires_at": {"N": "0"},
                    "calls": {"N": "0"},
                }
                key = {keys.PARTITION: {"S": keys.run_partition(RUN)}, keys.SORT: {"S": keys.LAKE}}
                stage.dynamodb.items.setdefault((keys.run_partition(RUN), keys.LAKE), key | note)

        stage.calls.hook = overtake_then_fail
        assert stage.lake.deliver(records)
        stage.calls.hook = lambda call, when: None
        assert stage.lake.deliver(records) == []
        of_lake = frozenset({("service", "lake")})
        published = {each.name for each in told.measured() if each.dimensions == of_lake}
    shown = series_on_dashboards(with_lake("dev", PLAIN))
    assert published == {each.name for each in shown if each.dimensions == of_lake}
    assert published == {
        "Records",
        "RefusedWrites",
        "RowsWritten",
        "RunsFailed",
        "RunsWritten",
        "WriteUnits",
    }
    assert not [
        each for each in series_on_dashboards(synthesise("dev")) if of_lake == each.dimensions
    ]
