"""`runtally backfill`: earlier runs come to the lake by the real handler, each once."""

import io
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from botocore import exceptions

from functions.adapters.telemetry import Defect
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.lake import handler
from local.commands import LocalStageError
from tests.build import RUN, T0, ended, started, step
from tests.fakes.calls import client_error
from tests.memory_lake import MemoryLake
from tests.unit.local.terminal import Terminal

DAY = 86_400 * 10**9
NOTHING = {"there": 0, "open": 0, "without": 0, "failed": []}


class MemoryLambda:
    """Invokes the lake's handler. `before` is called with each run's id, and may raise."""

    meta = SimpleNamespace(region_name="eu-west-1")

    def __init__(self) -> None:
        self.lake: MemoryLake
        self.invoked: list[str] = []
        self.before: Callable[[str], object] = lambda run_id: None
        self._one = threading.Lock()

    def invoke(self, **request: Any) -> dict[str, Any]:
        assert request["FunctionName"] == "lake"
        event = msgspec.json.decode(request["Payload"])
        self.invoked.append(event["run_id"])
        try:
            self.before(event["run_id"])
            with self._one:
                content = handler.write_again(event, self.lake.parts)
        except (Defect, Unavailable) as failure:  # told by Lambda with the status of a success
            said = {"errorMessage": str(failure), "errorType": type(failure).__name__}
            return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": _body(said)}
        return {"StatusCode": 200, "Payload": _body(content)}

    def close(self) -> None:
        """There are no connections to close."""


def _body(content: object) -> io.BytesIO:
    return io.BytesIO(msgspec.json.encode(content))


@pytest.fixture
def functions() -> MemoryLambda:
    return MemoryLambda()


@pytest.fixture
def terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, functions: MemoryLambda
) -> Terminal:
    """With a lake that was made after its runs ended."""
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("RUNTALLY_STAGE", "RUNTALLY_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)
    terminal = Terminal(capsys, lake=True, **{"lambda": functions})
    terminal.stage.__dict__["lake_function"] = "lake"
    terminal("tenants", "create", "acme")
    assert terminal.memory.lake
    terminal.memory.lake.write_plain()
    functions.lake = terminal.memory.lake
    for n in range(1, 4):
        begun = T0 - n * DAY
        terminal.record(f"run-{n}", started(begun, f"p-{n}"), *map(step, range(n)), ended())
    terminal.record("open", started(), step(1))
    terminal.record("other", started(), step(1), ended(), tenant="globex")
    empty(terminal)
    return terminal


def empty(terminal: Terminal) -> None:
    """As a lake is that was just made: without files, and runs without the item LAKE."""
    assert terminal.memory.lake
    terminal.memory.lake.s3.objects.clear()
    items = terminal.memory.dynamodb.items
    for key in [key for key in items if key[1] == "LAKE"]:
        del items[key]


def in_lake(terminal: Terminal) -> set[str]:
    assert terminal.memory.lake
    keys = terminal.memory.lake.s3.objects
    runs = {key.rpartition("/")[2].removesuffix(".parquet") for key in keys}
    assert len(keys) == 3 * len(runs), "a run has not all of its files"
    return runs


def ref(run_id: str) -> RunRef:
    return RUN._replace(run_id=run_id)


ACME = ("--tenant", "acme")


def test_ended_runs_are_written_once_the_oldest_first(
    terminal: Terminal, functions: MemoryLambda
) -> None:
    answer = terminal.json("backfill", *ACME, "--at-once", "1")
    assert answer == {
        **NOTHING, "dry_run": False, "lake": "s3://l/lake/", "runs": 3, "rows": 12, "open": 1,
    }  # fmt: skip
    assert functions.invoked == ["run-3", "run-2", "run-1"]
    assert in_lake(terminal) == {"run-1", "run-2", "run-3"}
    functions.invoked.clear()
    again = terminal.json("backfill", *ACME)
    assert (again["runs"], again["there"], again["open"]) == (0, 3, 1)
    assert functions.invoked == []
    assert terminal.json("backfill", *ACME, "--again")["runs"] == 3
    shown = terminal("backfill", *ACME)
    assert "0 runs with 0 rows written to s3://l/lake/" in shown
    assert "3 there already" in shown
    assert "1 left out: they have not ended" in shown


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("run-2",), {"run-2"}),
        (("--pipeline", "p-3"), {"run-3"}),
        (("--since", "2026-11-28T00:00:00Z"), {"run-1"}),
        (("--until", "2026-11-28T00:00:00Z"), {"run-2", "run-3"}),
    ],
)
def test_what_is_written_can_be_narrowed_down(
    terminal: Terminal, arguments: tuple[str, ...], written: set[str]
) -> None:
    counted = terminal.json("backfill", *arguments, *ACME, "--dry-run")
    assert (counted["dry_run"], counted["runs"], in_lake(terminal)) == (True, len(written), set())
    assert f"{len(written)} run" in terminal("backfill", *arguments, *ACME, "--dry-run")
    assert terminal.json("backfill", *arguments, *ACME)["runs"] == len(written)
    assert in_lake(terminal) == written


def test_a_run_that_was_given_up_has_its_item_but_no_files_and_is_written(
    terminal: Terminal,
) -> None:
    """The note says under which days there may be files, before there are any."""
    assert terminal.memory.lake

    def s3_fails(call: str, when: str) -> None:
        if (call, when) == ("s3.put_object", "before"):
            raise client_error("PutObject", "SlowDown")

    terminal.memory.calls.hook = s3_fails
    assert terminal.json("backfill", "run-1", *ACME, code=1)["failed"]
    terminal.memory.calls.hook = lambda *_: None
    assert terminal.memory.item(ref("run-1"), "LAKE")
    assert terminal.json("backfill", *ACME)["runs"] == 3
    assert in_lake(terminal) == {"run-1", "run-2", "run-3"}


def test_a_run_of_which_only_some_files_are_there_is_written(terminal: Terminal) -> None:
    terminal("backfill", *ACME)
    assert terminal.memory.lake
    (key,) = (key for key in terminal.memory.lake.files_of(ref("run-1")) if "/runs/" in key)
    del terminal.memory.lake.s3.objects[key]
    assert terminal.json("backfill", *ACME)["runs"] == 1
    assert in_lake(terminal) == {"run-1", "run-2", "run-3"}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Defect("KeyError"), "KeyError"),
        (client_error("Invoke", "TooManyRequestsException", "Rate Exceeded."), "Rate Exceeded"),
        (exceptions.ReadTimeoutError(endpoint_url="https://lambda"), "Read timeout"),
    ],
    ids=["function", "throttled", "timeout"],
)
def test_what_one_run_meets_is_told_and_the_others_go_on(
    terminal: Terminal, functions: MemoryLambda, failure: Exception, told: str
) -> None:
    def fail(run_id: str) -> None:
        if run_id == "run-2":
            raise failure

    functions.before = fail
    answer = terminal.json("backfill", *ACME, code=1)
    assert answer["runs"] == 2
    (failed,) = answer["failed"]
    assert failed["run_id"] == "run-2"
    assert told in failed["reason"]
    shown = terminal("backfill", *ACME, code=1)
    assert "✗ run-2" in shown
    assert "tries those that failed again" in shown
    functions.before = lambda run_id: None
    assert terminal.json("backfill", *ACME)["runs"] == 1
    assert in_lake(terminal) == {"run-1", "run-2", "run-3"}


@pytest.mark.parametrize(
    ("code", "advice"),
    [("AccessDeniedException", "allowed"), ("ResourceNotFoundException", "deleted")],
)
def test_what_every_run_would_meet_ends_it(
    terminal: Terminal, functions: MemoryLambda, code: str, advice: str
) -> None:
    def refuse(_: str) -> None:
        raise client_error("Invoke", code)

    functions.before = refuse
    with pytest.raises(LocalStageError, match=code) as error:
        terminal("backfill", *ACME, "--at-once", "1")
    assert advice in error.value.advice
    assert len(functions.invoked) == 1


def test_a_run_of_which_the_lake_has_nothing_is_counted_as_such(terminal: Terminal) -> None:
    """Its summary counts calls that have expired since."""
    items = terminal.memory.dynamodb.items
    (call, *_) = (key for key in items if "#run-3" in key[0] and key[1].startswith("AGENT#"))
    del items[call]
    answer = terminal.json("backfill", *ACME)
    assert (answer["runs"], answer["without"], answer["failed"]) == (2, 1, [])
    assert in_lake(terminal) == {"run-1", "run-2"}
    assert "1 left out: they are open or deleted" in terminal("backfill", *ACME)


def test_no_more_than_asked_for_are_written_at_once(
    terminal: Terminal, functions: MemoryLambda
) -> None:
    both = threading.Barrier(2, timeout=30)
    begun: list[str] = []
    most: list[int] = []
    lock = threading.Lock()

    def meet(run_id: str) -> None:
        with lock:
            begun.append(run_id)
            most.append(len(begun))
        both.wait()
        with lock:
            begun.remove(run_id)

    functions.before = meet
    terminal.record("run-4", started(T0 - 4 * DAY), step(1), ended())
    empty(terminal)
    assert terminal.json("backfill", *ACME, "--at-once", "2")["runs"] == 4
    assert max(most) == 2


def test_a_stage_without_a_lake_says_how_to_get_one(terminal: Terminal) -> None:
    terminal.stage.__dict__["lake_function"] = ""
    with pytest.raises(LocalStageError, match="local has no lake") as error:
        terminal("backfill", *ACME)
    assert "LakeSettings" in error.value.advice
    assert "runtally export" in error.value.advice


def test_a_run_excludes_options_to_choose_by_and_must_be_there(terminal: Terminal) -> None:
    with pytest.raises(LocalStageError, match="exclude each other"):
        terminal("backfill", "run-1", "--pipeline", "p-1", *ACME)
    with pytest.raises(LocalStageError, match="no such run"):
        terminal("backfill", "nowhere", *ACME)
