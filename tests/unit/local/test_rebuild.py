"""`runtally rebuild`: the objects alone make the same items, in an empty table and a full one."""

import gzip
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from cyclopts import CycloptsError

from functions.adapters.dynamodb import DynamoDBTable
from functions.core import keys
from functions.core.keys import RunRef
from local.commands import LocalStageError
from runtally.wire import Step
from tests import command_line, invariants
from tests.build import RUN, SECOND, T0, body, ended, log, started, step, step_id
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.memory_stage import RECOUNTS, MemoryStage
from tests.unit.local.terminal import Terminal

OTHER = RunRef("globex", "run-1")
OPEN = RunRef("acme", "open")
RUNS = (RUN, OPEN, OTHER)
NONE_TOO_OLD = {"events": 0, "runs": 0, "first_runs": []}
NOTHING_ELSE = {"foreign": {"objects": 0, "first": ""}, "lake_notes": 0, "checked": None}
EXACT = {"exact": True, "wrong": [], "dead_letters": 0}
RETENTION_DAYS = 10_000
LONG_AGO = 631_152_000 * SECOND  # in 1990
STEPS = [
    step(n, phase=f"phase {n % 3}", cost_usd=f"0.{n:03}", payload={"n": n, "text": "你\n" * n})
    for n in range(1, 30)
]


@pytest.fixture(autouse=True)
def retention(terminal: Terminal) -> None:
    """Long enough for what is recorded here, by the clock of whatever day it is."""
    terminal.stage.__dict__["retention_days"] = RETENTION_DAYS


def record(terminal: Terminal) -> None:
    """Three runs: in buckets, with text of every kind, with a late end; one of another tenant."""
    memory = terminal.memory
    for message in (
        body(started(attributes={"team": "a"}), *STEPS[:9], log(50, "one", "two"), buckets=3),
        body(*STEPS[9:], buckets=3),
        body(*STEPS[5:12], ended(result="完" * 9), buckets=3),
        body(step(1, status="failed", error="no"), run=OPEN),
        body(started(), step(1, payload="x" * 1_500_000), ended(), run=OTHER),
    ):
        assert memory.ingest(message) == []
    memory.drain()


def play(terminal: Terminal, into: MemoryStage) -> None:
    """Let ingest read all that was sent, from the bucket of the stage, into another's table."""
    into.s3.objects |= terminal.memory.s3.objects
    sent = terminal.memory.sqs.queues.pop(terminal.stage.event_queue_url, [])
    for message in reversed(sent):
        assert into.ingest(message.body) == []
    assert into.dead_letters() == []
    into.drain()


def recording(terminal: Terminal, at_once: int = 1) -> Callable[[float], None]:
    """The stage takes so many messages whenever the command lets time pass."""
    memory = terminal.memory

    def sleep(_: float) -> None:
        waiting = memory.sqs.queues.get(terminal.stage.event_queue_url, [])
        for _ in range(min(at_once, len(waiting))):
            assert memory.ingest(waiting.pop(0).body) == []
        memory.drain()

    return sleep


def rebuilt(
    terminal: Terminal,
    *arguments: str,
    code: int = 0,
    sleep: Callable[[float], None] | None = None,
) -> Any:
    """What the command answers that waits for its stage, which has it all."""
    returned = command_line.run(
        "rebuild", *arguments, "--json", stage=terminal.stage, sleep=sleep or recording(terminal)
    )
    assert returned == code
    return json.loads(terminal._capsys.readouterr().out)


def lose(terminal: Terminal, *sorts: str) -> None:
    """Items whose sort key begins so: all of runs, unless said otherwise."""
    for partition, sort in list(terminal.memory.dynamodb.items):
        if partition.startswith(keys.RUN_PREFIX) and sort.startswith(sorts or ("",)):
            del terminal.memory.dynamodb.items[partition, sort]


def states(terminal: Terminal) -> dict[RunRef, Any]:
    return {run: invariants.final_state(terminal.memory, run) for run in RUNS}


def test_an_empty_table_gets_the_same_items_from_the_objects_alone(terminal: Terminal) -> None:
    """How a table of one schema becomes one of the next: items, log lines, results, sums."""
    record(terminal)
    answer = terminal.json("rebuild", "--no-wait")
    assert answer == {
        "dry_run": False, "runs": 3, "steps": 31, "objects": 5, "expired": 0,
        "too_old": NONE_TOO_OLD, **NOTHING_ELSE,
    }  # fmt: skip
    fresh = MemoryStage(retention_days=36_500)
    assert isinstance(fresh.dynamodb, MemoryDynamoDB)
    assert not fresh.dynamodb.items
    play(terminal, fresh)
    for run in RUNS:
        made, was = (invariants.final_state(s, run) for s in (fresh, terminal.memory))
        assert made == was
        assert made
        invariants.pointers_hold(fresh, run)
    assert fresh.s3.objects.keys() >= terminal.memory.s3.objects.keys()
    invariants.counted_exactly(fresh, RUN, STEPS)


def test_a_full_table_is_left_as_it_is(terminal: Terminal) -> None:
    record(terminal)
    before = dict(terminal.memory.dynamodb.items), dict(terminal.memory.s3.objects)
    assert rebuilt(terminal)["checked"] == EXACT
    after = terminal.memory.dynamodb.items
    assert {key: _without_bookkeeping(item) for key, item in after.items()} == {
        key: _without_bookkeeping(item) for key, item in before[0].items()
    }
    runs = {key for key in terminal.memory.s3.objects if key.startswith(keys.RUN_OBJECTS)}
    assert runs == {key for key in before[1] if key.startswith(keys.RUN_OBJECTS)}


def _without_bookkeeping(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in {keys.EXPIRES, "stored_at"}}


def test_steps_that_were_lost_come_back_and_totals_that_count_them_twice_are_told(
    terminal: Terminal,
) -> None:
    """The stream cannot tell a step that comes back from a new one; without totals it adds up."""
    record(terminal)
    whole = states(terminal)
    lost = [key for key in terminal.memory.dynamodb.items if key[1].startswith("AGENT#")][::2]
    for key in lost:
        del terminal.memory.dynamodb.items[key]
    of_run = ("run-1", "--tenant", "acme")
    (wrong,) = rebuilt(terminal, *of_run, code=1)["checked"]["wrong"]
    assert (wrong["steps_stored"], wrong["steps_sent"]) == (29, 29)
    assert {drift["item"] for drift in wrong["drift"]} == {"TOTALS"}
    steps = {key: item for key, item in whole[RUN].items() if key[1].startswith("AGENT#")}
    assert {key: states(terminal)[RUN][key] for key in steps} == steps
    lose(terminal)
    assert rebuilt(terminal)["checked"] == EXACT
    assert states(terminal) == whole


def test_pages_tenants_and_runs_narrow_it(terminal: Terminal) -> None:
    record(terminal)
    terminal.memory.s3.most_versions = 2

    def found(*arguments: str) -> tuple[int, int]:
        answer = terminal.json("rebuild", "--dry-run", *arguments)
        return answer["runs"], answer["objects"]

    assert found() == (3, 5)
    assert found("--tenant", "acme") == (2, 4)
    assert found("run-1", "--tenant", "acme") == (1, 3)
    assert found("run", "--tenant", "acme") == (0, 0)
    assert terminal.stage.event_queue_url not in terminal.memory.sqs.queues
    with pytest.raises(LocalStageError, match="needs `--tenant`"):
        terminal("rebuild", "run-1")


def test_objects_that_outlived_their_run_are_left_out(terminal: Terminal) -> None:
    """Ingest would refuse each of their events, and fill the dead letters."""
    record(terminal)
    (key, *_) = (key for key in terminal.memory.s3.objects if "/open/" in key)
    terminal.memory.s3.stored_at[key] = datetime(1990, 1, 1, tzinfo=UTC)
    assert terminal.json("rebuild", "--dry-run") == {
        "dry_run": True, "runs": 2, "steps": 30, "objects": 4, "expired": 1,
        "too_old": NONE_TOO_OLD, **NOTHING_ELSE,
    }  # fmt: skip
    assert "1 left out" in terminal("rebuild", "--dry-run")


def long_ago(n: int) -> Step:
    return step(n, started_at=LONG_AGO, ended_at=LONG_AGO + n)


def test_events_that_are_too_old_by_now_are_told_of_and_not_sent(terminal: Terminal) -> None:
    """They came late, when they were just young enough, and would fill the dead letters now."""
    for n in range(1, 6):
        terminal.record(f"old-{n}", long_ago(1), long_ago(2))
    terminal.record("mixed", started(LONG_AGO), long_ago(1), step(2, payload="你"), ended())
    terminal.record("new", started(), step(1), ended())
    first = [["acme", "mixed"], ["acme", "old-1"], ["acme", "old-2"]]
    too_old = {"events": 12, "runs": 6, "first_runs": first}
    expected = {
        "runs": 2, "steps": 2, "objects": 2, "expired": 0, "too_old": too_old, **NOTHING_ELSE,
    }  # fmt: skip
    assert terminal.json("rebuild", "--dry-run") == {"dry_run": True, **expected}
    assert terminal.json("rebuild", "--no-wait") == {"dry_run": False, **expected}
    shown = " ".join(terminal("rebuild", "--dry-run").split())
    assert "12 events of 6 runs left out" in shown
    assert "acme/mixed, acme/old-1, acme/old-2, …" in shown
    fresh = MemoryStage(retention_days=RETENTION_DAYS)
    play(terminal, fresh)
    assert len(fresh.items_of(RUN._replace(run_id="mixed"), keys.STEP_PREFIX)) == 1
    assert not fresh.items_of(RUN._replace(run_id="old-1"))


def test_what_cannot_be_read_is_left_to_ingest_to_refuse(terminal: Terminal) -> None:
    """Such as an event of a newer version, before going back to an older one."""
    terminal.record("new", step(1))
    (key,) = (key for key in terminal.memory.s3.objects if "/new/" in key)
    terminal.memory.s3.objects[key] = gzip.compress(b'{"type":"newer","at":0}\n')
    answer = terminal.json("rebuild", "--no-wait")
    assert (answer["objects"], answer["too_old"]) == (1, NONE_TOO_OLD)
    (sent,) = terminal.memory.sqs.queues[terminal.stage.event_queue_url]
    assert '"newer"' in sent.body


def test_what_is_no_run_s_is_passed_over_and_told(terminal: Terminal) -> None:
    """As consoles make folders, and people copies."""
    record(terminal)
    foreign = [
        "agent-runs/",
        "agent-runs/acme/",
        "agent-runs/acme/run-1/",
        "agent-runs/acme/run-1/notes.txt",
        "agent-runs/old/acme/run-1/copy.json.gz",
        "agent-runs/\x1b[31m",
    ]
    for key in foreign:
        terminal.memory.s3.put_object(Key=key, Body=b"")
    answer = rebuilt(terminal)
    assert (answer["runs"], answer["objects"], answer["checked"]) == (3, 5, EXACT)
    assert answer["foreign"] == {"objects": 6, "first": "agent-runs/"}
    of_run = terminal.json("rebuild", "run-1", "--tenant", "acme", "--dry-run")
    assert of_run["foreign"] == {"objects": 2, "first": "agent-runs/acme/run-1/"}
    assert "6 objects of no run left out: agent-runs/\n" in terminal("rebuild", "--dry-run")
    for key in foreign[:-1]:
        del terminal.memory.s3.objects[key]
    assert "\x1b" not in terminal("rebuild", "--dry-run")


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_objects_are_sent_at_once_and_counted_by_run(
    terminal: Terminal, at_once: int
) -> None:
    record(terminal)
    expected = terminal.json("rebuild", "--dry-run")
    under_way: list[int] = []
    most: list[int] = []
    lock = threading.Lock()
    together = threading.Barrier(at_once, timeout=30)

    def meet(call: str, when: str) -> None:
        if call != "s3.get_object":
            return
        with lock:
            under_way.append(1) if when == "before" else under_way.pop()
            most.append(len(under_way))
            first = sum(made == call for made in terminal.memory.calls.made) <= at_once
        if first and when == "before":
            together.wait()

    terminal.memory.calls.hook = meet
    terminal.memory.calls.made.clear()
    assert terminal.json("rebuild", "--dry-run", "--at-once", f"{at_once}") == expected
    assert max(most) == at_once
    with pytest.raises(CycloptsError):
        terminal("rebuild", "--dry-run", "--at-once", "33")


# -- what became of it -----------------------------------------------------------------------------


def test_it_waits_until_the_stage_has_all_and_shows_it_exactly(terminal: Terminal) -> None:
    record(terminal)
    before = states(terminal)
    lose(terminal)
    assert not any(states(terminal).values())
    assert rebuilt(terminal)["checked"] == EXACT
    assert states(terminal) == before
    shown = terminal("rebuild", "--within", "0s")
    assert "5 objects of 3 runs with 31 steps sent" in shown
    assert "has all its steps, and is shown exactly" in shown


def losing(terminal: Terminal, text: str) -> Callable[[float], None]:
    """As `recording`, but messages with that text never arrive."""
    record_one = recording(terminal)

    def sleep(seconds: float) -> None:
        waiting = terminal.memory.sqs.queues[terminal.stage.event_queue_url]
        waiting[:] = [sent for sent in waiting if text not in sent.body]
        record_one(seconds)

    return sleep


def test_a_step_that_was_lost_is_told_and_the_other_runs_are_checked(terminal: Terminal) -> None:
    record(terminal)
    lose(terminal, keys.STEP_PREFIX + step_id(20))
    checked = rebuilt(terminal, code=1, sleep=losing(terminal, step_id(20)))["checked"]
    (wrong,) = checked["wrong"]
    assert not checked["exact"]
    drift = wrong.pop("drift")
    assert wrong == {
        "tenant_id": "acme", "run_id": "run-1", "steps_sent": 29, "steps_stored": 28,
        "end_missing": False,
    }  # fmt: skip
    assert {"item": "SUMMARY", "field": "agents_total", "stands": 29, "counted": 28} in drift
    shown = " ".join(terminal("rebuild", "--within", "0s", code=1).split())
    assert "acme/run-1 1 of 29 steps are missing" in shown
    assert "runtally dlq list" in shown


def test_a_step_is_missed_also_where_the_sums_agree_with_what_is_left(terminal: Terminal) -> None:
    record(terminal)
    lose(terminal)
    checked = rebuilt(terminal, code=1, sleep=losing(terminal, step_id(20)))["checked"]
    (wrong,) = checked["wrong"]
    assert (wrong["run_id"], wrong["steps_sent"], wrong["drift"]) == ("run-1", 29, [])
    assert 0 < wrong["steps_stored"] < 29


def test_an_end_that_was_lost_is_told(terminal: Terminal) -> None:
    terminal.record("run-1", step(1))
    terminal.record("run-1", ended(at=T0))  # its object is listed before that of the step
    terminal.record("run-2", step(1), ended())
    lose(terminal)
    sleep = losing(terminal, '"run-1","events":[{"type":"run.ended"')
    (wrong,) = rebuilt(terminal, code=1, sleep=sleep)["checked"]["wrong"]
    assert (wrong["run_id"], wrong["steps_stored"], wrong["end_missing"]) == ("run-1", 1, True)
    lose(terminal)
    assert "its end is missing" in terminal("rebuild", "--within", "0s", code=1)


def test_a_run_of_which_nothing_arrives_is_missed(terminal: Terminal) -> None:
    terminal.record("run-1", started())
    lose(terminal)
    (wrong,) = rebuilt(terminal, code=1, sleep=losing(terminal, "run-1"))["checked"]["wrong"]
    assert (wrong["run_id"], wrong["steps_sent"], wrong["steps_stored"]) == ("run-1", 0, 0)
    assert "acme/run-1  it is not there" in terminal("rebuild", "--within", "0s", code=1)


def falsify(terminal: Terminal) -> None:
    table = DynamoDBTable(terminal.stage.dynamodb, terminal.stage.table_name)
    table.update(keys.item_of_run(RUN, keys.SUMMARY), "SET #failed_total = :v", "", {":v": 7})


def test_a_summary_that_is_missing_is_asked_for_and_looked_at_again(terminal: Terminal) -> None:
    record(terminal)
    lose(terminal, keys.SUMMARY)
    recounts: list[str] = []

    def note(call: str, when: str) -> None:
        if (call, when) == ("sqs.send_message", "after"):
            recounts[:] = [m.body for m in terminal.memory.sqs.queues.get(RECOUNTS, [])]

    terminal.memory.calls.hook = note
    assert rebuilt(terminal)["checked"] == EXACT
    assert [msgspec.json.decode(body) for body in recounts] == [
        {"tenant_id": "globex", "run_id": "run-1"}
    ]
    assert terminal.memory.item(RUN, keys.SUMMARY)


def test_sums_that_stay_off_are_told_field_by_field(terminal: Terminal) -> None:
    record(terminal)
    falsify(terminal)

    def nobody_recounts(_: float) -> None:
        terminal.memory.sqs.queues.clear()

    (wrong,) = rebuilt(terminal, code=1, sleep=nobody_recounts)["checked"]["wrong"]
    assert wrong["steps_stored"] == wrong["steps_sent"] == 29
    assert wrong["drift"] == [
        {"item": "SUMMARY", "field": "failed_total", "stands": 7, "counted": 0}
    ]
    shown = terminal("rebuild", "--within", "0s", code=1)
    assert "SUMMARY.failed_total  7, counted 0" in shown


def test_time_that_is_up_is_not_waited_for(terminal: Terminal) -> None:
    """It grows with the work unless it is given; messages that nobody takes would be waited for."""
    record(terminal)
    lose(terminal)

    def sleep(_: float) -> None:
        raise AssertionError("there is no time left")

    checked = rebuilt(terminal, "--within", "0s", code=1, sleep=sleep)["checked"]
    assert [wrong["run_id"] for wrong in checked["wrong"]] == ["open", "run-1", "run-1"]
    recording(terminal, at_once=10)(1)
    falsify(terminal)
    checked = rebuilt(terminal, "--within", "0s", code=1, sleep=sleep)["checked"]
    assert [wrong["steps_stored"] for wrong in checked["wrong"]] == [29]


def test_messages_of_others_keep_nobody_waiting(terminal: Terminal) -> None:
    record(terminal)
    memory, url = terminal.memory, terminal.stage.event_queue_url
    memory.sqs.send_message(QueueUrl=url, MessageBody="of somebody else")
    pauses: list[int] = []

    def sleep(_: float) -> None:
        pauses.append(1)
        memory.sqs.queues[url] = memory.sqs.queues[url][:1]

    assert rebuilt(terminal, sleep=sleep)["checked"] == EXACT
    assert len(pauses) == 1


def test_a_run_that_is_deleted_meanwhile_is_not_missed(terminal: Terminal) -> None:
    record(terminal)
    deleted: list[int] = []

    def sleep(_: float) -> None:
        if not deleted:
            deleted.append(1)
            terminal("delete", "run", "open", "--tenant", "acme")
            terminal.memory.erase_all()
        recording(terminal)(1)

    assert rebuilt(terminal, sleep=sleep)["checked"] == EXACT
    assert deleted
    assert [item["SK"] for item in terminal.memory.items_of(OPEN)] == [keys.RUN]


def test_what_ingest_refuses_is_missed_and_its_dead_letter_told(terminal: Terminal) -> None:
    """A step that this version cannot read counts as sent all the same."""
    terminal.record("run-1", step(1))
    terminal.record("run-1", step(2))
    (key,) = (key for key in terminal.memory.s3.objects if step_id(2) in key)
    line = gzip.decompress(terminal.memory.s3.objects[key])
    terminal.memory.s3.objects[key] = gzip.compress(line.replace(b"succeeded", b"unheard-of"))
    lose(terminal)
    checked = rebuilt(terminal, code=1)["checked"]
    assert [(w["steps_sent"], w["steps_stored"]) for w in checked["wrong"]] == [(2, 1)]
    assert checked["dead_letters"] == 1


@pytest.mark.parametrize("call", ["sqs.send_message", "s3.get_object", "s3.list_objects_v2"])
def test_interrupted_and_repeated_nothing_is_lost_or_doubled(terminal: Terminal, call: str) -> None:
    record(terminal)
    before = states(terminal)
    lose(terminal)
    left = iter(range(2))

    def interrupt(made: str, when: str) -> None:
        if (made, when) == (call, "after") and next(left, None) is None:
            terminal.memory.calls.hook = lambda *_: None
            raise KeyboardInterrupt

    terminal.memory.s3.most_versions = 1
    terminal.memory.calls.hook = interrupt
    with pytest.raises(LocalStageError, match=r"Interrupted: .* sent") as interrupted:
        rebuilt(terminal)
    assert "what is there is recognised" in interrupted.value.advice
    assert rebuilt(terminal)["checked"] == EXACT
    assert states(terminal) == before


def test_interrupted_while_it_waits_it_says_that_all_is_sent(terminal: Terminal) -> None:
    record(terminal)

    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(LocalStageError, match="all is sent"):
        rebuilt(terminal, sleep=sleep)
