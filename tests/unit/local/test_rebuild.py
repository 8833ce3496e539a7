"""`runtally rebuild`: the objects alone make the same items, in an empty table and a full one."""

import gzip
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.core import keys
from functions.core.keys import RunRef
from local.commands import LocalStageError
from runtally.wire import Step
from tests import invariants
from tests.build import RUN, SECOND, body, ended, log, started, step
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.memory_stage import MemoryStage
from tests.unit.local.terminal import Terminal

OTHER = RunRef("globex", "run-1")
NONE_TOO_OLD = {"events": 0, "runs": 0, "first_runs": []}
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
        body(step(1, status="failed", error="no"), run=RUN._replace(run_id="open")),
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


def test_an_empty_table_gets_the_same_items_from_the_objects_alone(terminal: Terminal) -> None:
    """How a table of one schema becomes one of the next: items, log lines, results, sums."""
    record(terminal)
    answer = terminal.json("rebuild")
    assert answer == {
        "dry_run": False, "runs": 3, "objects": 5, "expired": 0, "too_old": NONE_TOO_OLD,
    }  # fmt: skip
    fresh = MemoryStage(retention_days=36_500)
    assert isinstance(fresh.dynamodb, MemoryDynamoDB)
    assert not fresh.dynamodb.items
    play(terminal, fresh)
    for run in (RUN, RUN._replace(run_id="open"), OTHER):
        made, was = (invariants.final_state(s, run) for s in (fresh, terminal.memory))
        assert made == was
        assert made
        invariants.pointers_hold(fresh, run)
    assert fresh.s3.objects.keys() >= terminal.memory.s3.objects.keys()
    invariants.counted_exactly(fresh, RUN, STEPS)


def test_a_full_table_is_left_as_it_is(terminal: Terminal) -> None:
    record(terminal)
    before = dict(terminal.memory.dynamodb.items), dict(terminal.memory.s3.objects)
    terminal("rebuild")
    sent = terminal.memory.sqs.queues.pop(terminal.stage.event_queue_url)
    assert terminal.memory.ingest(*(message.body for message in sent)) == []
    terminal.memory.drain()
    after = terminal.memory.dynamodb.items
    assert {key: _without_bookkeeping(item) for key, item in after.items()} == {
        key: _without_bookkeeping(item) for key, item in before[0].items()
    }
    runs = {key for key in terminal.memory.s3.objects if key.startswith(keys.RUN_OBJECTS)}
    assert runs == {key for key in before[1] if key.startswith(keys.RUN_OBJECTS)}


def _without_bookkeeping(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in {keys.EXPIRES, "stored_at"}}


def test_items_that_were_lost_come_back(terminal: Terminal) -> None:
    record(terminal)
    whole = invariants.final_state(terminal.memory, RUN)
    lost = [key for key in terminal.memory.dynamodb.items if key[1].startswith("AGENT#")][::2]
    for key in lost:
        del terminal.memory.dynamodb.items[key]
    terminal("rebuild", "run-1", "--tenant", "acme")
    sent = terminal.memory.sqs.queues.pop(terminal.stage.event_queue_url)
    assert terminal.memory.ingest(*(message.body for message in sent)) == []
    steps = {key: item for key, item in whole.items() if key[1].startswith("AGENT#")}
    now = invariants.final_state(terminal.memory, RUN)
    assert {key: now[key] for key in steps} == steps


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
        "dry_run": True, "runs": 2, "objects": 4, "expired": 1, "too_old": NONE_TOO_OLD,
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
    expected = {"runs": 2, "objects": 2, "expired": 0, "too_old": too_old}
    assert terminal.json("rebuild", "--dry-run") == {"dry_run": True, **expected}
    assert terminal.json("rebuild") == {"dry_run": False, **expected}
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
    answer = terminal.json("rebuild")
    assert (answer["objects"], answer["too_old"]) == (1, NONE_TOO_OLD)
    (sent,) = terminal.memory.sqs.queues[terminal.stage.event_queue_url]
    assert '"newer"' in sent.body
