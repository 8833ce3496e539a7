"""Each alarm, as synthesised, over what the real handlers publish in bad hours and in good ones."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from functions.core import keys
from functions.core.keys import RunRef
from tests import build, emf, happenings
from tests.build import RUN
from tests.emf import Measured
from tests.event_files import event
from tests.infra import metric_maths
from tests.infra.assembly import Assembly, Properties, with_all_options
from tests.infra.metric_maths import fires
from tests.memory_stage import MemoryStage
from tests.telling import Told, listening, namespace_of

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def assembly() -> Assembly:
    return with_all_options(coordinated=True)


@pytest.fixture
def heard(
    assembly: Assembly, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[MemoryStage, Told]]:
    with listening(monkeypatch, capsys, namespace_of(assembly)) as both:
        yield both


def alarms(assembly: Assembly) -> dict[str, Properties]:
    return assembly.resources("AWS::CloudWatch::Alarm")


def of_aws(alarm: Properties, values: Mapping[str, list[float]]) -> Measured:
    """Metrics that AWS publishes, by their names; each of an alarm that sums over dimensions."""
    return {s: values[s.name] for s in metric_maths.series_in(alarm) if s.name in values}


def both(alarm: Properties, ours: Measured, **of_aws_: list[float]) -> Measured:
    return {**ours, **of_aws(alarm, of_aws_)}


# -- what our own functions publish -------------------------------------------------------------


def test_failed_batches(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    alarm = alarms(assembly)["FailedBatches"]
    stage.ingest(build.body(build.step(1), build.ended()))
    stage.drain()
    happenings.deliver_to_recount(stage, json.dumps({**RUN._asdict(), "agents_total": None}))
    assert not fires(alarm, [told.measured()])
    name = "aws/lambda/1f2e/shardId-00000001-a1b2/2026/11/29/2026-11-29T12.00.00-77aa"
    stage.failed_batches.objects[name] = json.dumps(event("recount/failed-batch-object")).encode()
    bodies = [record["body"] for record in event("recount/failed-batch")["Records"]]
    happenings.deliver_to_recount(stage, *bodies)
    assert fires(alarm, [told.measured()])


def run_with_lost_batch(stage: MemoryStage, ended_at: int) -> None:
    """Stored; then only the run's end comes through the stream."""
    steps = [build.step(n, started_at=ended_at, ended_at=ended_at) for n in (1, 2)]
    stage.ingest(build.body(*steps, build.ended()))
    stage.summarize(stage.new_stream_records()[-1:])


def test_drift_that_stays(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    an_hour_ago = time.time_ns() - 3_600 * SECOND
    stage.now_ns = an_hour_ago + 60 * SECOND  # stored a minute after it ended
    run_with_lost_batch(stage, an_hour_ago)
    measured = told.measured()
    assert fires(alarms(assembly)["Drift"], [measured])
    assert not fires(alarms(assembly)["FailedBatches"], [measured])


def test_drift_of_steps_that_are_still_in_the_stream(
    assembly: Assembly, heard: tuple[MemoryStage, Told]
) -> None:
    stage, told = heard
    stage.now_ns = time.time_ns()
    run_with_lost_batch(stage, stage.now_ns - SECOND)
    lines = told.lines()
    assert any(line.get("RecountDrift") for line in lines)
    assert not fires(alarms(assembly)["Drift"], [emf.measured_in(lines)])


def test_drift_while_runs_of_the_past_are_replayed(
    assembly: Assembly, heard: tuple[MemoryStage, Told]
) -> None:
    stage, told = heard
    stage.now_ns = time.time_ns()
    run_with_lost_batch(stage, stage.now_ns - 100 * 3_600 * SECOND)
    lines = told.lines()
    assert any(line.get("RecountDrift") for line in lines)
    assert not fires(alarms(assembly)["Drift"], [emf.measured_in(lines)])


def test_drift_that_stays_while_another_sender_is_late(
    assembly: Assembly, heard: tuple[MemoryStage, Told]
) -> None:
    """A laptop that sends what it kept yesterday hides nothing of the others' runs."""
    stage, told = heard
    stage.now_ns = time.time_ns() - 3_600 * SECOND
    run_with_lost_batch(stage, stage.now_ns)
    stage.now_ns = time.time_ns()
    yesterday = stage.now_ns - 86_400 * SECOND
    late = build.step(9, started_at=yesterday, ended_at=yesterday)
    stage.ingest(build.body(late, run=RunRef("acme", "late")))
    assert fires(alarms(assembly)["Drift"], [told.measured()])


def test_drift_that_stays_though_the_sender_s_clock_is_ahead(
    assembly: Assembly, heard: tuple[MemoryStage, Told]
) -> None:
    stage, told = heard
    stage.now_ns = time.time_ns() - 3_600 * SECOND
    run_with_lost_batch(stage, stage.now_ns + 7_200 * SECOND)
    assert fires(alarms(assembly)["Drift"], [told.measured()])


def test_totals_that_count_too_much(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    """At once: no record that is still to come takes anything away."""
    stage, told = heard
    stage.now_ns = time.time_ns()
    now = stage.now_ns - SECOND
    steps = [build.step(n, started_at=now, ended_at=now) for n in (1, 2)]
    stage.ingest(build.body(*steps, build.ended()))
    *counted, end = stage.new_stream_records()
    stage.summarize(counted)
    del stage.dynamodb.items[counted[0]["dynamodb"]["Keys"]["PK"]["S"], f"AGENT#{build.step_id(1)}"]
    stage.summarize([end])
    assert fires(alarms(assembly)["Drift"], [told.measured()])


def good_steps(first: int, count: int) -> str:
    return build.body(*(build.step(n) for n in range(first, first + count)))


def test_rejections(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    alarm = alarms(assembly)["Rejections"]
    stage.ingest(good_steps(1, 100), *9 * ["no JSON"])
    assert not fires(alarm, [told.measured()]), "9 % of few"
    for first in range(1_000, 3_000, 500):
        stage.ingest(good_steps(first, 500))
    stage.ingest(good_steps(1_000, 500), *12 * ["no JSON"])
    assert not fires(alarm, [told.measured()]), "under 1 % of stored and repeated"
    stage.ingest(good_steps(5_000, 500), *12 * ["no JSON"])
    assert fires(alarm, [told.measured()])


def test_nobody_reads_the_stream(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    alarm = alarms(assembly)["StreamStopped"]
    stage.ingest(build.body(build.step(1)))
    stored = told.measured()
    counted = both(alarm, stored, Invocations=[1.0])
    late = of_aws(alarm, {"Invocations": [1.0]})
    hour = 3_600 // metric_maths.period_of(alarm)
    assert hour == 4
    idle: list[Measured] = [{}]
    assert fires(alarm, [counted, stored, stored]), "used all the time"
    assert fires(alarm, [counted, stored, *(hour - 1) * idle, stored]), "used once an hour"
    assert fires(alarm, [stored, *5 * hour * idle, stored]), "used every few hours"
    assert not fires(alarm, [*hour * [counted], stored, late, *hour * [counted]]), "a straddle"
    assert not fires(alarm, [*3 * hour * [stored], *6 * hour * idle]), "over at last"


def test_deletions_that_are_overdue(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    stage, told = heard
    alarm = alarms(assembly)["DeletionsOverdue"]
    happenings.delete(stage, RunRef("acme", "run-to-delete"))
    periods = []
    for _ in range(12):
        stage.pass_time(900)
        stage.sweep()
        periods.append(told.measured())
    assert not fires(alarm, periods[:4]), "a deletion takes its time"
    assert fires(alarm, periods)
    stage.erase_all()
    stage.sweep()
    told.lines()
    stage.sweep()
    assert not fires(alarm, [*periods, told.measured()])


# -- what AWS publishes -------------------------------------------------------------------------

BAD: dict[str, dict[str, list[float]]] = {
    "DeadLetters": {"ApproximateNumberOfMessagesVisible": [1.0]},
    "Age": {"ApproximateAgeOfOldestMessage": [7_201.0]},
    "Stopped": {"ApproximateNumberOfMessagesVisible": [3.0], "NumberOfMessagesReceived": [0.0]},
    "Errors": {"Errors": [1.0]},
    "StreamAge": {"IteratorAge": [900_001.0]},
    "FunctionsThrottled": {"Throttles": [1.0]},
    "TableThrottled": {"WriteThrottleEvents": [2.0]},
    "ApiFailing": {"5xx": [1.0]},
    "CacheEvictions": {"Evictions": [1.0]},
    "CacheFilling": {"BytesUsedForCache": [0.2e9, 0.751e9]},
    "CacheThrottled": {"ThrottledCmds": [1.0]},
    "CacheSignInFailures": {"AuthenticationFailures": [1.0]},
}
GOOD: dict[str, dict[str, list[float]]] = {
    "DeadLetters": {"ApproximateNumberOfMessagesVisible": [0.0]},
    "Age": {"ApproximateAgeOfOldestMessage": [30.0]},
    "Stopped": {"ApproximateNumberOfMessagesVisible": [3.0], "NumberOfMessagesReceived": [9.0]},
    "Errors": {"Errors": [0.0]},
    "StreamAge": {"IteratorAge": [900.0]},
    "FunctionsThrottled": {"Throttles": [0.0]},
    "TableThrottled": {"WriteThrottleEvents": [0.0], "ReadThrottleEvents": [0.0]},
    "ApiFailing": {"5xx": [0.0]},
    "CacheEvictions": {"Evictions": [0.0]},
    "CacheFilling": {"BytesUsedForCache": [0.75e9]},
    "CacheThrottled": {"ThrottledCmds": [0.0]},
    "CacheSignInFailures": {"AuthenticationFailures": [0.0], "IamAuthenticationThrottling": [0.0]},
}
OURS = {"FailedBatches", "Drift", "Rejections", "StreamStopped", "DeletionsOverdue"}


def is_of(name: str, kind: str) -> bool:
    return name == kind or (name.endswith(kind) and not name.startswith("Stream"))


@pytest.mark.parametrize("kind", BAD)
def test_what_aws_counts(assembly: Assembly, kind: str) -> None:
    of_kind = [each for name, each in alarms(assembly).items() if is_of(name, kind)]
    assert of_kind
    for alarm in of_kind:
        assert fires(alarm, 4 * [of_aws(alarm, BAD[kind])])
        assert not fires(alarm, 4 * [of_aws(alarm, GOOD[kind])])
        # Over as soon as it is over, unless it waits for what comes again after a while.
        over = alarm["EvaluationPeriods"] if "DatapointsToAlarm" in alarm else 1
        good = over * [of_aws(alarm, GOOD[kind])]
        assert not fires(alarm, [*4 * [of_aws(alarm, BAD[kind])], *good])


def crashing(alarm: Properties, seconds: list[int]) -> list[Measured]:
    """Periods of five minutes with an error at each of these times, the last of all in the last."""
    in_period = [second // 300 for second in seconds]
    return [
        of_aws(alarm, {"Errors": [1.0]}) if period in in_period else {}
        for period in range(max(in_period) + 1)
    ]


@pytest.mark.parametrize(
    ("name", "hidden_s", "runs_s"),
    [
        ("Ingest", 720, 120),
        ("Summarize", 0, 60),
        ("Recount", 1_800, 300),
        ("Erase", 1_800, 300),
        ("DeadJobs", 180, 30),
        ("Sweep", 300, 240),
    ],
)
def test_what_keeps_crashing_is_told_at_its_second_crash(
    assembly: Assembly, name: str, hidden_s: int, runs_s: int
) -> None:
    """However a batch lies in CloudWatch's periods, and whether it crashes early or late."""
    alarm = alarms(assembly)[f"{name}Errors"]
    for first in range(0, 300, 20):
        assert not fires(alarm, crashing(alarm, [first]))
        for apart in (hidden_s, hidden_s + runs_s):
            if first + apart >= 300:
                assert fires(alarm, crashing(alarm, [first, first + apart])), (first, apart)


@pytest.mark.parametrize("sweep_minutes", [5, 60])
def test_alarms_on_the_sweep_go_by_how_often_it_runs(sweep_minutes: int) -> None:
    of_stage = alarms(with_all_options(sweep_minutes))
    errors, overdue = of_stage["SweepErrors"], of_stage["DeletionsOverdue"]
    apart = max(300, 60 * sweep_minutes)
    for first in range(0, 300, 20):
        assert fires(errors, crashing(errors, [first, first + apart])), first
    period = metric_maths.period_of(overdue)
    assert period >= 2 * 60 * sweep_minutes, "every one holds a sweep, also when one is late"
    found = {series: [1.0] for series in metric_maths.series_in(overdue)}
    lasting = max(2, 7_200 // period)
    assert fires(overdue, lasting * [found])
    assert not fires(overdue, (lasting - 1) * [found])


def test_what_dynamodb_throttles_of_an_index_is_told_too(assembly: Assembly) -> None:
    """Of the table's reads and writes, and of each index's: by whichever it is alone."""
    alarm = alarms(assembly)["TableThrottled"]
    places = {(each.name, each.dimensions) for each in metric_maths.series_in(alarm)}
    indexes = {dict(of).get("GlobalSecondaryIndexName") for _, of in places}
    assert indexes == {None, keys.BY_TENANT, keys.OPEN_RUNS}
    assert len(places) == 2 * len(indexes)
    for series in metric_maths.series_in(alarm):
        assert fires(alarm, 3 * [{series: [1.0]}]), series


def test_workers_that_are_busy_with_long_jobs_have_not_stopped(assembly: Assembly) -> None:
    """Of our functions, what is hidden may as well be what crashed: there it excuses nothing."""
    hidden = {**BAD["Stopped"], "ApproximateNumberOfMessagesNotVisible": [2.0]}
    told = {
        name
        for name, alarm in alarms(assembly).items()
        if is_of(name, "Stopped") and fires(alarm, 3 * [of_aws(alarm, hidden)])
    }
    assert told == {"EventsStopped", "RecountsStopped", "ErasuresStopped"}


def test_no_alarm_is_left_untried(assembly: Assembly) -> None:
    left = {name for name in alarms(assembly) if not any(is_of(name, kind) for kind in BAD)}
    assert left == OURS | {"SweepMissing"}


def test_the_sweep_does_not_run(assembly: Assembly) -> None:
    alarm = alarms(assembly)["SweepMissing"]
    ran = of_aws(alarm, {"Invocations": [3.0]})
    assert fires(alarm, [ran, {}, {}])
    assert not fires(alarm, [{}, ran])
    assert not fires(alarm, [ran, {}])


def test_an_idle_stage_is_silent(assembly: Assembly, heard: tuple[MemoryStage, Told]) -> None:
    """Nothing but the sweep runs, which publishes nothing of our own that would be paid for."""
    stage, told = heard
    stage.sweep()
    assert told.lines() == []
    for name, alarm in alarms(assembly).items():
        swept = {"Invocations": [3.0]} if name == "SweepMissing" else {}
        assert not fires(alarm, 10 * [of_aws(alarm, swept)]), name


def test_silence_is_never_a_state_of_its_own(assembly: Assembly) -> None:
    """INSUFFICIENT_DATA of a stage that is merely idle would hide the alarm that is broken."""
    for name, alarm in alarms(assembly).items():
        expected = "breaching" if name == "SweepMissing" else "notBreaching"
        assert alarm["TreatMissingData"] == expected


@pytest.mark.parametrize("statistic", ["Sum", "Maximum", "Minimum"])
def test_the_evaluator_knows_missing_data(statistic: str) -> None:
    query = {
        "Id": "m",
        "MetricStat": {"Metric": {"Namespace": "n", "MetricName": "m"}, "Stat": statistic},
    }
    value: Callable[[str, list[float]], Any] = lambda expression, given: metric_maths.value_of(  # noqa: E731
        {"Metrics": [query, {"Expression": expression}]},
        {emf.Series("n", "m", frozenset()): given} if given else {},
    )
    assert value("m + 1", []) is None
    assert value("1 / m", [0.0]) is None
    assert value("IF(FILL(m, 0) > 1 AND m < 9, 5, 7)", [2.0]) == 5
    assert value("m", [2.0, 4.0]) == {"Sum": 6, "Maximum": 4, "Minimum": 2}[statistic]
