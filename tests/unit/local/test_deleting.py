"""`runtally delete`, from its arguments to its output and to what is left."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.core import keys
from functions.core.keys import InvocationRef, RunRef
from functions.core.lake_ports import LakeNote
from functions.core.tenant_deletion import SEGMENTS
from local.commands import LocalStageError
from tests import build, command_line
from tests.memory_stage import ERASURES
from tests.unit.local.terminal import Terminal

RUNS = ("r-1", "r-10", "other")


class Interrupted(BaseException):
    """Ctrl-C."""


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Two tenants with a few runs each, an invocation that has a long result, and API keys."""
    terminal = Terminal(capsys)
    for tenant in ("acme", "acme-2"):
        terminal("tenants", "create", tenant)
        terminal("keys", "create", tenant, "--name", "first")
        for run in RUNS:
            terminal.record(run, build.started(), build.step(1), build.ended(), tenant=tenant)
        invoked = terminal.memory.invoke(tenant_id=tenant)
        answer = build.answer(invoked.invocation_id, result="long " * 80_000)
        assert terminal.memory.ingest(build.answer_body(answer, tenant_id=tenant)) == []
        terminal.memory.s3.put_object(Key=f"inbox/{tenant}/_/left", Body=b"of no run")
    terminal.memory.dynamodb.settle()
    return terminal


def erasing(terminal: Terminal) -> Callable[[float], None]:
    """Time that passes while a command waits; erase works meanwhile, and indexes catch up."""

    def sleep(seconds: float) -> None:
        terminal.memory.pass_time(60)
        assert terminal.memory.erase() == []
        terminal.memory.dynamodb.settle()

    return sleep


def holdings(terminal: Terminal, tenant: str) -> list[str]:
    """All keys of the table and the bucket that name the tenant; tombstones are no holding."""
    stage = terminal.memory
    marks = (f"#{tenant}#", f"/{tenant}/")
    items = [
        f"{partition} {sort}"
        for (partition, sort), item in stage.dynamodb.items.items()
        if "deleted_at" not in item
        and (
            marks[0] in f"{partition}#"
            or item.get("tenant_id") == {"S": tenant}
            or partition == f"TENANT#{tenant}"
        )
    ]
    objects = [key for key in {*stage.s3.objects, *stage.s3.older} if marks[1] in key]
    return sorted(items + objects)


def test_a_run_is_gone_at_once_and_its_receipt_is_shown(terminal: Terminal) -> None:
    shown = terminal("delete", "run", "r-1", "--tenant", "acme")
    assert "not yet" in shown
    assert "--wait" in shown
    with pytest.raises(LocalStageError, match="no such run"):
        terminal("show", "r-1", "--tenant", "acme")
    terminal.memory.erase_all()
    receipt = terminal.json("delete", "run", "r-1", "--tenant", "acme")
    assert (receipt["status"], receipt["run_id"]) == ("finished", "r-1")
    assert receipt["items"] == 4  # AGENT, TOTALS, PREVIEW, SUMMARY
    assert terminal.json("show", "r-10", "--tenant", "acme")["run"]["run_id"] == "r-10"


def test_who_waits_gets_the_finished_receipt(terminal: Terminal) -> None:
    arguments = ("delete", "run", "r-1", "--tenant", "acme", "--wait", "--json")
    command_line.run(*arguments, stage=terminal.stage, sleep=erasing(terminal))
    receipt = json.loads(terminal._capsys.readouterr().out)
    assert receipt["status"] == "finished"
    assert receipt["looks"] == 2


def test_a_run_that_is_not_there_is_said_so(terminal: Terminal) -> None:
    with pytest.raises(LocalStageError, match="no such run"):
        terminal("delete", "run", "nowhere", "--tenant", "acme")
    assert not terminal.memory.sqs.queues.get(ERASURES)


def delete_tenant(terminal: Terminal, *arguments: str, tenant: str = "acme", **more: Any) -> Any:
    command = ("delete", "tenant", tenant, "--yes", "--json", *arguments)
    code = command_line.run(
        *command, stage=terminal.stage, clock=lambda: terminal.memory.now_ns, **more
    )
    answer = json.loads(terminal._capsys.readouterr().out)
    assert bool(code) == (answer["status"] == "running")
    return answer


def pass_quiet_time(terminal: Terminal) -> None:
    terminal.memory.pass_time(terminal.stage.quiet_s)
    terminal.memory.dynamodb.settle()


def test_nothing_is_left_of_a_deleted_tenant_and_others_keep_all(terminal: Terminal) -> None:
    others = holdings(terminal, "acme-2")
    assert len(holdings(terminal, "acme")) == len(others) > 10
    answer = delete_tenant(terminal, "--wait", sleep=erasing(terminal))
    assert answer == {
        "tenant_id": "acme",
        "status": "finished",
        "keys": 1,
        "runs": 3,
        "unfinished": 0,
        "invocations": 1,
        "objects": 2,
        "versions": 2,
    }
    assert holdings(terminal, "acme") == []
    assert holdings(terminal, "acme-2") == others
    assert [t["tenant_id"] for t in terminal.json("tenants", "list")] == ["acme-2"]


def test_without_waiting_the_same_command_goes_on_until_it_is_finished(terminal: Terminal) -> None:
    first = delete_tenant(terminal)
    assert (first["status"], first["runs"], first["keys"]) == ("running", 3, 1)
    terminal.memory.dynamodb.settle()
    second = delete_tenant(terminal)
    assert (second["status"], second["runs"], second["unfinished"]) == ("running", 0, 3)
    terminal.memory.erase_all()
    terminal.memory.dynamodb.settle()
    assert delete_tenant(terminal)["status"] == "finished"
    assert holdings(terminal, "acme") == []


def test_it_is_resumed_after_a_kill_at_any_request(terminal: Terminal) -> None:
    """Ctrl-C before or after each request of the first minute; then the command again."""
    stage = terminal.memory
    items, objects = dict(stage.dynamodb.items), dict(stage.s3.objects)
    calls = len(stage.calls.made)
    delete_tenant(terminal)
    requests = len(stage.calls.made) - calls
    assert requests > 15
    others = holdings(terminal, "acme-2")
    for index in range(2 * requests):
        stage.dynamodb.items, stage.s3.objects = dict(items), dict(objects)
        stage.dynamodb.settle()
        stage.sqs.queues.clear()
        moments = iter(range(10_000))

        def interrupt(call: str, when: str, moments: Any = moments, index: int = index) -> None:
            if next(moments) == index:
                raise Interrupted

        stage.calls.hook = interrupt
        with pytest.raises(Interrupted):
            delete_tenant(terminal)
        stage.calls.hook = lambda call, when: None
        stage.dynamodb.settle()
        for (partition, sort), item in list(stage.dynamodb.items.items()):
            if sort == keys.RUN and "deleted_at" in item:
                # As the sweep does, which finds it in the index.
                run = keys.parse_run_partition(partition)[0]
                stage.erase_parts.erase.erasures.request_erasure(run)
        answer = delete_tenant(terminal, "--wait", sleep=erasing(terminal))
        assert answer["status"] == "finished"
        assert holdings(terminal, "acme") == []
        assert holdings(terminal, "acme-2") == others


def test_it_is_resumed_after_a_kill_at_any_request_of_the_last_call(terminal: Terminal) -> None:
    stage = terminal.memory
    delete_tenant(terminal)
    stage.erase_all()
    stage.dynamodb.settle()
    items, objects = dict(stage.dynamodb.items), dict(stage.s3.objects)
    calls = len(stage.calls.made)
    assert delete_tenant(terminal)["status"] == "finished"
    requests = len(stage.calls.made) - calls
    for index in range(requests):
        stage.dynamodb.items, stage.s3.objects = dict(items), dict(objects)
        stage.dynamodb.settle()
        seen = iter(range(10_000))

        def interrupt(call: str, when: str, seen: Any = seen, index: int = index) -> None:
            if when == "after" and next(seen) == index:
                raise Interrupted

        stage.calls.hook = interrupt
        with pytest.raises(Interrupted):
            delete_tenant(terminal)
        stage.calls.hook = lambda call, when: None
        assert delete_tenant(terminal)["status"] == "finished"
        assert holdings(terminal, "acme") == []


@pytest.mark.parametrize("tenant", ["acme/r-1", "acme/", "acme#r-1", ""])
def test_what_can_be_no_tenant_is_refused(terminal: Terminal, tenant: str) -> None:
    before, calls = holdings(terminal, "acme"), len(terminal.memory.calls.made)
    with pytest.raises(LocalStageError, match="no tenant id"):
        terminal("delete", "tenant", tenant, "--yes")
    assert holdings(terminal, "acme") == before
    assert len(terminal.memory.calls.made) == calls


def test_who_waits_reads_the_whole_table_only_once(terminal: Terminal) -> None:
    made, polls = terminal.memory.calls.made, []
    made.clear()
    erase = erasing(terminal)

    def sleep(seconds: float) -> None:
        polls.append(made.count("dynamodb.scan"))
        erase(seconds)

    assert delete_tenant(terminal, "--wait", sleep=sleep)["status"] == "finished"
    assert len(polls) > 3
    assert set(polls) == {0}
    assert made.count("dynamodb.scan") == SEGMENTS
    assert made.count("dynamodb.put_item") == 2  # the tombstone, once a call: polls are none


def test_runs_past_their_time_are_deleted_too(terminal: Terminal) -> None:
    for (partition, sort), item in terminal.memory.dynamodb.items.items():
        if sort == keys.RUN and "#acme#" in partition:
            item["expires_at"] = {"N": "1"}
    answer = delete_tenant(terminal, "--wait", sleep=erasing(terminal))
    assert answer["runs"] == len(RUNS)
    assert holdings(terminal, "acme") == []


def test_a_key_that_the_index_shows_late_holds_no_longer_in_the_end(terminal: Terminal) -> None:
    terminal("tenants", "create", "late")
    secret = terminal.json("keys", "create", "late", "--name", "k")["api_key"]
    stage = terminal.memory
    assert delete_tenant(terminal, tenant="late")["keys"] == 0
    assert stage.api.authenticate(f"Bearer {secret}") == "late"
    pass_quiet_time(terminal)
    found = delete_tenant(terminal, tenant="late")
    assert (found["keys"], found["status"]) == (1, "running")  # it held until now
    with pytest.raises(Exception, match="no valid API key"):
        stage.api.authenticate(f"Bearer {secret}")
    terminal.memory.dynamodb.settle()
    assert delete_tenant(terminal, tenant="late")["status"] == "finished"


def test_a_run_that_the_index_shows_late_is_erased_too(terminal: Terminal) -> None:
    terminal("tenants", "create", "late")
    run = build.RUN._replace(tenant_id="late")
    assert terminal.memory.ingest(build.body(build.started(), build.step(1), run=run)) == []
    answer = delete_tenant(terminal, "--wait", tenant="late", sleep=erasing(terminal))
    assert (answer["status"], answer["runs"]) == ("finished", 1)
    assert holdings(terminal, "late") == []


def test_a_run_opened_by_who_had_read_the_tenant_before_is_erased_too(terminal: Terminal) -> None:
    terminal("tenants", "create", "late")
    stage, run = terminal.memory, build.RUN._replace(tenant_id="late")

    def meanwhile(call: str, when: str) -> None:
        if (call, when) == ("dynamodb.put_item", "before"):  # of RUN: it has read the tenant
            stage.calls.hook = lambda call, when: None
            assert delete_tenant(terminal, tenant="late")["status"] == "running"

    stage.calls.hook = meanwhile
    assert stage.ingest(build.body(build.started(), build.step(1), run=run)) == []
    assert stage.item(run, keys.RUN)
    answer = delete_tenant(terminal, "--wait", tenant="late", sleep=erasing(terminal))
    assert (answer["status"], answer["runs"]) == ("finished", 1)
    assert holdings(terminal, "late") == []


def test_the_quiet_time_counts_from_the_first_tombstone(terminal: Terminal) -> None:
    terminal("tenants", "create", "late")
    terminal.memory.dynamodb.settle()
    assert delete_tenant(terminal, tenant="late")["status"] == "running"
    terminal.memory.pass_time(terminal.stage.quiet_s - 1)
    assert delete_tenant(terminal, tenant="late")["status"] == "running"
    assert "dynamodb.scan" not in terminal.memory.calls.made
    terminal.memory.pass_time(1)
    assert delete_tenant(terminal, tenant="late")["status"] == "finished"


def test_what_is_left_of_a_tenant_without_an_item_waits_for_the_quiet_time_too(
    terminal: Terminal,
) -> None:
    terminal.memory.s3.put_object(Key="inbox/unknown/_/left", Body=b"of no run")
    first = delete_tenant(terminal, tenant="unknown")
    assert (first["status"], first["objects"]) == ("running", 1)
    pass_quiet_time(terminal)
    assert delete_tenant(terminal, tenant="unknown")["status"] == "finished"


def test_what_was_still_queued_brings_nothing_back(terminal: Terminal) -> None:
    delete_tenant(terminal, "--wait", sleep=erasing(terminal))
    run = build.RUN._replace(tenant_id="acme", run_id="queued")
    answer = build.answer("f" * 32, result="long " * 80_000)
    for body in (build.body(build.started(), run=run), build.answer_body(answer, tenant_id="acme")):
        assert terminal.memory.ingest(body) == []
    assert holdings(terminal, "acme") == []
    assert terminal.memory.dead_letters() == []
    assert delete_tenant(terminal)["status"] == "finished"
    terminal("tenants", "create", "acme")
    assert terminal.memory.ingest(build.body(build.started(), run=run)) == []
    assert terminal.json("show", "queued", "--tenant", "acme")["run"]["run_id"] == "queued"


def test_a_tenant_is_deleted_only_by_who_means_it(terminal: Terminal) -> None:
    before = holdings(terminal, "acme")
    with pytest.raises(LocalStageError, match="all that the tenant acme has") as refused:
        terminal("delete", "tenant", "acme")
    assert "--yes" in str(refused.value)
    assert holdings(terminal, "acme") == before


def test_a_tenant_that_is_not_there_is_said_so(terminal: Terminal) -> None:
    for wait in ((), ("--wait",)):
        with pytest.raises(LocalStageError, match="no tenant acm"):
            terminal("delete", "tenant", "acm", "--yes", *wait)


def test_a_key_holds_no_longer_from_the_first_moment_on(terminal: Terminal) -> None:
    secret = terminal.json("keys", "create", "acme", "--name", "second")["api_key"]
    terminal.memory.dynamodb.settle()
    assert terminal.memory.api.authenticate(f"Bearer {secret}") == "acme"
    delete_tenant(terminal)
    with pytest.raises(Exception, match="no valid API key"):
        terminal.memory.api.authenticate(f"Bearer {secret}")


def test_people_see_what_was_deleted_and_how_to_go_on(terminal: Terminal) -> None:
    terminal("tenants", "create", "empty")
    terminal.memory.dynamodb.settle()

    def shown(tenant: str) -> str:
        command = ("delete", "tenant", tenant, "--yes")
        command_line.run(*command, stage=terminal.stage, clock=lambda: terminal.memory.now_ns)
        return terminal._capsys.readouterr().out

    assert "being erased: the same command goes on" in shown("acme")
    assert "may still arrive in the next minutes: the same command goes on" in shown("empty")
    terminal.memory.erase_all()
    pass_quiet_time(terminal)
    for tenant in ("acme", "empty"):
        assert f"Nothing is left of {tenant}." in shown(tenant)


def test_an_invocation_is_found_wherever_it_lies(terminal: Terminal) -> None:
    ref = InvocationRef("acme", "x")
    for number in range(40):
        terminal.memory.invoke(tenant_id="acme", client_token=f"token-{number}")
    assert delete_tenant(terminal, "--wait", sleep=erasing(terminal))["invocations"] == 41
    assert keys.invocation_item(ref).partition.startswith(keys.invocations_of_tenant("acme"))


# -- where there is a lake ----------------------------------------------------------------------


@pytest.fixture
def with_lake(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A tenant with a run, whose files in the lake are locked."""
    terminal = Terminal(capsys, lake=True)
    assert terminal.memory.lake
    terminal.memory.lake.write_plain()
    terminal.memory.lake.s3.lock_until = datetime(2036, 11, 27, 12, tzinfo=UTC)
    terminal("tenants", "create", "acme")
    for run in ("r-1", "r-2"):
        terminal.record(run, build.started(), build.step(1), build.ended())
    return terminal


def files_of(terminal: Terminal) -> list[str]:
    assert terminal.memory.lake
    return sorted(terminal.memory.lake.s3.objects)


def test_the_receipt_says_until_when_a_lock_holds(with_lake: Terminal) -> None:
    arguments = ("delete", "run", "r-1", "--tenant", "acme")
    assert "lock" not in with_lake(*arguments)
    with_lake.memory.erase_all()
    assert "Until 2036-11-27" in with_lake(*arguments)
    assert with_lake.json(*arguments)["locked_until"] == "2036-11-27T12:00:00.000000000Z"
    assert [key for key in files_of(with_lake) if "r-1" in key] == []
    assert len(files_of(with_lake)) == 3


@pytest.mark.parametrize("locked", [True, False])
def test_a_tenant_s_files_go_or_are_hidden(with_lake: Terminal, locked: bool) -> None:
    """Also those of which no run tells any more."""
    lake = with_lake.memory.lake
    assert lake
    old = RunRef("acme", "old")
    lake.s3.put_object(Key="lake/calls/tenant_id=acme/day=2020-01-01/old.parquet", Body=b"x")
    lake.parts.write.source.put_note(old, LakeNote(), LakeNote(("2020-01-01",), 1, 2**32))
    lake.s3.put_object(Key="lake/runs/tenant_id=acme2/day=2020-01-01/old.parquet", Body=b"x")
    if not locked:
        lake.s3.locked.clear()
    answer = delete_tenant(with_lake, "--wait", sleep=erasing(with_lake))
    assert answer["status"] == "finished"
    assert answer.get("locked_until") == ("2036-11-27T12:00:00.000000000Z" if locked else None)
    assert files_of(with_lake) == ["lake/runs/tenant_id=acme2/day=2020-01-01/old.parquet"]
    assert with_lake.memory.item(old, keys.LAKE) is None
    older = {key for key in lake.s3.older if "tenant_id=acme/" in key}
    assert len(older) == (7 if locked else 0)
