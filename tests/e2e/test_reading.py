"""The reading half of the command line on the embedded AWS, and what it finds that is broken."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from functions.core import keys
from local import waiting
from local.reading import register
from local.stage import Stage
from tests import command_line
from tests.build import ended, started, step, step_id
from tests.e2e.pipeline import WITHIN_S, Pipeline
from tests.unit.local.terminal import strictly

pytestmark = pytest.mark.xdist_group("stage")


class Terminal:
    def __init__(self, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
        self._stage = stage
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        returned = command_line.run(*arguments, stage=self._stage)
        output = self._capsys.readouterr()
        assert (returned or 0) == code, output
        return output.out


@pytest.fixture
def terminal(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("RUNTALLY_TENANT_ID", "acme")
    register(stage, ["acme"])
    return Terminal(stage, capsys)


def test_a_run_is_listed_shown_compared_and_added_up(
    pipeline: Pipeline, terminal: Terminal
) -> None:
    payload = {"question": "你好", "n": 9007199254740993}
    calls = [step(n, phase="act", cost_usd="0.1", payload=payload) for n in range(40)]
    pipeline.send(pipeline.body(started(pipeline="reading")), pipeline.body(*calls, ended()))
    pipeline.summarised(40)
    run_id = pipeline.ref.run_id
    (listed,) = strictly(terminal("runs", "--pipeline", "reading", "--json"))["runs"]
    assert (listed["run_id"], listed["totals"]["cost_usd_total"]) == (run_id, "4")
    assert run_id in terminal("runs")
    detail = strictly(terminal("show", run_id, "--json"))
    assert [call["step_id"] for call in detail["calls"]] == [step_id(n) for n in range(40)]
    assert "40 calls, 0 failed; $4" in terminal("show", run_id)
    assert terminal("payload", run_id, step_id(7)).startswith('{"question":"你好"')
    assert "40" in terminal("insights", "--pipeline", "reading")
    assert "40 → 40" in terminal("compare", run_id, run_id)


def test_tail_prints_each_call_once_while_they_are_sent(
    pipeline: Pipeline, terminal: Terminal
) -> None:
    """Out of order, some of them far below those that came before."""
    batches = [
        [step(n) for n in range(2_000, 2_020)],
        [step(n) for n in range(20)],
        [step(n) for n in range(1_990, 2_010)],
    ]
    pipeline.send(pipeline.body(started()))
    stored = keys.item_of_run(pipeline.ref, keys.RUN)
    waiting.until(lambda: pipeline.table.get(stored), WITHIN_S, "The run did not start")

    def send() -> None:
        for some in batches:
            pipeline.send(pipeline.body(*some))
            pause.wait(1.5)
        pipeline.send(pipeline.body(ended()))

    pause = threading.Event()
    sender = threading.Thread(target=send)
    sender.start()
    printed = terminal("tail", pipeline.ref.run_id, "--interval", "0.2s", "--json").splitlines()
    sender.join()
    found = [strictly(line)["step_id"] for line in printed]
    assert sorted(found) == sorted({call.step_id for some in batches for call in some})


def test_totals_that_are_off_are_drift_and_a_recount_is_made(
    pipeline: Pipeline, terminal: Terminal
) -> None:
    run_id = pipeline.ref.run_id
    pipeline.send(pipeline.body(started(), *(step(n) for n in range(5)), ended()))
    pipeline.summarised(5)
    assert "shown exactly" in terminal("reconcile", run_id)
    totals = keys.item_of_run(pipeline.ref, keys.TOTALS)
    pipeline.table.update(totals, "SET #agents_total = :v", "", {":v": 4})
    assert "TOTALS.agents_total  4, counted 5" in terminal("reconcile", run_id)
    summary = keys.item_of_run(pipeline.ref, keys.SUMMARY)
    pipeline.stage.dynamodb.delete_item(
        TableName=pipeline.stage.table_name,
        Key={keys.PARTITION: {"S": summary.partition}, keys.SORT: {"S": summary.sort}},
    )
    assert "SUMMARY.agents_total  missing, counted 5" in terminal("reconcile", run_id, code=1)
    assert "1 recount asked for" in terminal("reconcile", run_id, "--wait")
    assert pipeline.item("SUMMARY")["agents_total"] == 5


@contextmanager
def disabled(stage: Stage, function: str) -> Iterator[None]:
    functions = stage.client("lambda")
    answer = functions.list_event_source_mappings(FunctionName=function)
    (mapping,) = answer["EventSourceMappings"]
    functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    try:
        yield
    finally:
        functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)


def test_doctor_finds_a_stage_healthy_and_then_what_was_broken(
    stage: Stage, terminal: Terminal
) -> None:
    dead_letters = stage.event_queue_dead_letter_url
    stage.sqs.purge_queue(QueueUrl=dead_letters)
    diagnosis = strictly(terminal("doctor", "--json"))
    assert [finding for finding in diagnosis["findings"] if finding["ok"] is False] == []
    assert "canary's sums" in [finding["check"] for finding in diagnosis["findings"]]
    stage.sqs.send_message(QueueUrl=dead_letters, MessageBody="{}")
    try:
        with disabled(stage, stage.recount_function):
            shown = terminal("doctor", code=1)
    finally:
        stage.sqs.purge_queue(QueueUrl=dead_letters)
    assert "✗ dead letters of events  1 there" in shown
    assert f"✗ event source of {stage.recount_function}  it is Disabled" in shown
    assert shown.count("✗") == 2
