"""`runtally tenants` and `runtally keys`, from their arguments to their output."""

import json
from typing import Any

import pytest
from cyclopts import CycloptsError

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.api.auth import Authenticate, Unauthorized
from functions.core.keys import LAKE, RunRef
from functions.core.lake_ports import parse_object
from functions.core.tenants import hash_of
from functions.core.times import SECOND, parse
from local.commands import LocalStageError
from local.stage import Stage
from tests import command_line
from tests.build import RUN, T0, ended, started, step
from tests.fakes.calls import client_error
from tests.fakes.cloud import MemoryCloud
from tests.fakes.dynamodb import MemoryDynamoDB
from tests.unit.local.terminal import Terminal as LakeTerminal
from tests.unit.local.test_stage import OUTPUTS


class Terminal:
    """Runs commands on a stage in memory, each long enough after the one before for the index."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.dynamodb = MemoryDynamoDB()
        outputs = {**OUTPUTS, "ApiUrl": "https://api"}
        self.stage = Stage.of_outputs(outputs, MemoryCloud(dynamodb=self.dynamodb))
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[str, str]:
        """Standard output and standard error."""
        assert command_line.run(*arguments, stage=self.stage) is None
        self.dynamodb.settle()
        output = self._capsys.readouterr()
        return output.out, output.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json")[0])

    def tenant_of(self, secret: str, now_ns: int) -> str:
        table = DynamoDBTable(self.stage.dynamodb, self.stage.table_name)
        return Authenticate(DynamoDBTenants(table), lambda: now_ns)(f"Bearer {secret}")


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Terminal:
    terminal = Terminal(capsys)
    terminal("tenants", "create", "acme", "--name", "Acme [red] Corp.")
    return terminal


def test_tenants_are_made_and_listed(terminal: Terminal) -> None:
    assert "keys create beta" in terminal("tenants", "create", "beta")[0]
    shown, _ = terminal("tenants", "list")
    assert "Acme [red] Corp." in shown
    assert shown.index("acme") < shown.index("beta")
    listed = terminal.json("tenants", "list")
    assert [(tenant["tenant_id"], tenant["name"]) for tenant in listed] == [
        ("acme", "Acme [red] Corp."),
        ("beta", None),
    ]
    assert parse(listed[0]["created_at"]) <= parse(listed[1]["created_at"])


def test_a_tenant_s_retention_is_set_shown_and_taken_back(terminal: Terminal) -> None:
    stage_days = terminal.stage.retention_days
    for days, said in (
        (1, "1 day"),
        (stage_days - 1, f"{stage_days - 1} days"),
        (0, "the stage's"),
    ):
        assert f"is {said}." in terminal("tenants", "set", "acme", f"--retention-days={days}")[0]
        assert said in terminal("tenants", "list")[0]
        (listed,) = terminal.json("tenants", "list")
        assert listed["retention_days"] == (days or None)
    for days in (-1, stage_days):
        with pytest.raises(LocalStageError, match="the stage's"):
            terminal("tenants", "set", "acme", f"--retention-days={days}")
    with pytest.raises(LocalStageError, match="no tenant nobody"):
        terminal("tenants", "set", "nobody", "--retention-days=1")


DAY = 86_400 * 10**9
SET = ("tenants", "set", "acme", "--retention-days")


@pytest.fixture
def with_lake(capsys: pytest.CaptureFixture[str]) -> LakeTerminal:
    """A tenant with a run, and with three that TTL has taken, one of which moved from another day;
    and another tenant with one of these."""
    terminal = LakeTerminal(capsys, lake=True)
    terminal("tenants", "create", "acme")
    assert terminal.memory.lake
    terminal.memory.lake.write_plain()
    for run_id in ("gone-1", "gone-2", "gone-3", "there"):
        terminal.record(run_id, started(T0 - DAY), step(1), ended())
    terminal.record("gone-1", started(T0 - 2 * DAY))
    terminal.record("gone-1", started(T0 - DAY), step(1), ended(), tenant="globex")
    items = terminal.memory.dynamodb.items
    for partition, sort in [key for key in items if "gone" in key[0] and key[1] != LAKE]:
        del items[partition, sort]
    terminal.memory.dynamodb.settle()
    return terminal


def runs_in_lake(terminal: LakeTerminal) -> set[RunRef]:
    """Of which there is any version of a file."""
    assert terminal.memory.lake
    s3 = terminal.memory.lake.s3
    return {parse_object(key)[0] for key in {*s3.objects, *s3.older}}


def test_a_tenant_s_retention_takes_from_the_lake_what_the_stage_has_no_more(
    with_lake: LakeTerminal,
) -> None:
    assert with_lake.memory.lake
    with_lake.memory.lake.s3.most_versions = 2
    assert with_lake.json(*SET, "0")["deletions_begun"] == 0
    with_lake.memory.erase_all()
    assert len(runs_in_lake(with_lake)) == 5
    assert with_lake.json(*SET, "30")["deletions_begun"] == 3
    with_lake.memory.erase_all()
    assert runs_in_lake(with_lake) == {("acme", "there"), ("globex", "gone-1")}
    assert with_lake.memory.item(RUN._replace(run_id="there"), "RUN")
    assert with_lake.json(*SET, "30")["deletions_begun"] == 0


def test_deletions_from_the_lake_are_told_and_what_was_broken_off_is_asked_for_again(
    with_lake: LakeTerminal,
) -> None:
    sqs = with_lake.memory.sqs

    def deny(call: str, when: str) -> None:
        if (call, when) == ("sqs.send_message", "before"):
            raise client_error("SendMessage", "AccessDenied", "not authorized: sqs:SendMessage")

    with_lake.memory.calls.hook = deny
    with pytest.raises(LocalStageError, match="sqs:SendMessage"):
        with_lake(*SET, "30")
    with_lake.memory.calls.hook = lambda *_: None
    assert not sqs.queues.get(with_lake.stage.erasure_queue_url)
    said = with_lake(*SET, "30")
    assert "is 30 days." in said
    with_lake.memory.erase_all()
    assert len(runs_in_lake(with_lake)) == 2
    assert "deleted from the lake" not in with_lake(*SET, "30")


def test_deletions_from_the_lake_are_counted(with_lake: LakeTerminal) -> None:
    assert "3 runs that the stage has no more" in with_lake(*SET, "30")


def test_a_new_key_is_all_that_standard_output_has_and_lets_its_tenant_in(
    terminal: Terminal,
) -> None:
    secret, said = terminal("keys", "create", "acme", "--name", "ci")
    assert secret.startswith("rt_")
    assert secret.count("\n") == 1
    assert "not shown again" in said
    assert terminal.tenant_of(secret.strip(), now_ns=0) == "acme"


def test_a_key_is_never_shown_again(terminal: Terminal) -> None:
    secret = terminal.json("keys", "create", "acme", "--name", "ci")["api_key"]
    for arguments in (("list", "acme"), ("revoke", "acme", hash_of(secret)[:16])):
        for form in ((), ("--json",)):
            shown = "".join(terminal("keys", *arguments, *form))
            assert secret[6:-4] not in shown


def test_keys_are_listed_with_what_recognises_them(terminal: Terminal) -> None:
    made = [terminal.json("keys", "create", "acme", "--name", name) for name in ("[b]", "two")]
    listed = terminal.json("keys", "list", "acme")
    assert listed == [{n: v for n, v in key.items() if n != "api_key"} for key in made[::-1]]
    assert {(key["status"], key["until"]) for key in listed} == {("active", None)}


def test_on_a_narrow_terminal_what_is_copied_stays_whole(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "the [b]nightly[/b] export, which " + "is long " * 8
    made = terminal.json("keys", "create", "acme", "--name", name)
    rotated = terminal.json("keys", "rotate", "acme", made["key_id"], "--overlap", "0s")
    shown, _ = terminal("keys", "list", "acme")
    for key in (made, rotated):
        assert key["key_id"] in shown
        assert f"{key['api_key'][:6]}…{key['api_key'][-4:]}" in shown
    assert "revoked" in shown
    assert "[b]" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_revoked_key_is_refused_at_once_and_listed_so(terminal: Terminal) -> None:
    key = terminal.json("keys", "create", "acme", "--name", "ci")
    assert "no longer" in terminal("keys", "revoke", "acme", key["key_id"])[0]
    with pytest.raises(Unauthorized):
        terminal.tenant_of(key["api_key"], now_ns=0)
    revoked = terminal.json("keys", "revoke", "acme", key["key_id"])
    assert (revoked["status"], revoked["until"] is None) == ("revoked", False)
    assert terminal.json("keys", "list", "acme") == [revoked]


@pytest.mark.parametrize(
    ("overlap", "seconds"), [((), 86_400), (("--overlap", "1h30m"), 5_400)], ids=["24h", "1h30m"]
)
def test_a_rotated_key_holds_for_its_overlap(
    terminal: Terminal, overlap: tuple[str, ...], seconds: int
) -> None:
    old = terminal.json("keys", "create", "acme", "--name", "ci")
    new = terminal.json("keys", "rotate", "acme", old["key_id"], *overlap)
    assert new["name"] == "ci"
    listed = {key["key_id"]: key for key in terminal.json("keys", "list", "acme")}
    end = parse(listed[old["key_id"]]["until"])
    assert seconds - 1 <= (end - parse(new["created_at"])) / SECOND <= seconds
    assert terminal.tenant_of(old["api_key"], end - 1) == "acme"
    assert terminal.tenant_of(new["api_key"], end) == "acme"
    with pytest.raises(Unauthorized):
        terminal.tenant_of(old["api_key"], end)


def test_no_overlap_revokes_the_old_key(terminal: Terminal) -> None:
    old = terminal.json("keys", "create", "acme", "--name", "ci")
    secret, said = terminal("keys", "rotate", "acme", old["key_id"], "--overlap", "0s")
    assert terminal.tenant_of(secret.strip(), now_ns=0) == "acme"
    assert "not shown again" in said
    statuses = [key["status"] for key in terminal.json("keys", "list", "acme")]
    assert statuses == ["active", "revoked"]


def test_nothing_there_says_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    empty = Terminal(capsys)
    assert "tenants create" in empty("tenants", "list")[0]
    assert empty.json("tenants", "list") == []
    empty("tenants", "create", "acme")
    assert "keys create acme" in empty("keys", "list", "acme")[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tenants", "create", "acme"), "acme already"),
        (("tenants", "create", "a#b"), "no tenant id"),
        (("keys", "list", "nobody"), "no tenant nobody"),
        (("keys", "revoke", "acme", "0123456789abcdef"), "no key 0123456789abcdef"),
        (("keys", "rotate", "acme", "0123456789abcdef"), "no key 0123456789abcdef"),
    ],
)
def test_what_cannot_be_done_says_why(
    terminal: Terminal, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(LocalStageError, match=said):
        terminal(*arguments)


def test_what_dynamodb_refuses_says_what_to_do(terminal: Terminal) -> None:
    def deny(call: str, when: str) -> None:
        raise client_error("Query", "AccessDeniedException", "not authorized: dynamodb:Query")

    terminal.dynamodb.calls.hook = deny
    with pytest.raises(LocalStageError, match="dynamodb:Query") as error:
        terminal("tenants", "list")
    assert "allowed" in error.value.advice


@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "create", "acme"),
        ("keys", "create", "--name", "ci"),
        ("keys", "rotate", "acme", "0123456789abcdef", "--overlap", "soon"),
        ("tenants", "list", "--connect", "x"),
    ],
)
def test_what_is_no_command_is_told_before_anything_happens(
    terminal: Terminal, arguments: tuple[str, ...]
) -> None:
    terminal.dynamodb.calls.made.clear()
    with pytest.raises(CycloptsError):
        terminal(*arguments)
    assert terminal.dynamodb.calls.made == []
