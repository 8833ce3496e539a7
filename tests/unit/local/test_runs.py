"""`runtally runs`, `show` and `payload`, from their arguments to their output."""

import itertools
import json
import tracemalloc
from collections.abc import Iterator
from typing import Literal

import msgspec
import pytest
from cyclopts import CycloptsError
from rich.cells import cell_len

from functions.api import shapes
from local.commands import LocalStageError
from local.reading import register
from local.show import Highlights
from tests.build import SECOND, T0, ended, log, started, step, step_id
from tests.unit.local.terminal import Terminal, strictly

COST = "123456789.000000000000000001"


def three_runs(terminal: Terminal) -> None:
    terminal.record("run-1", started(T0), step(1, phase="plan", cost_usd=COST), ended())
    failed = step(2, status="failed", error="ToolError: no", phase="act")
    terminal.record(
        "run-2", started(T0 + SECOND, "translate"), failed, ended(T0 + 90 * SECOND, "failed")
    )
    terminal.record("run-3", started(T0 + 2 * SECOND), step(3, phase="plan"))


def test_runs_are_listed_newest_first_with_what_they_came_to(terminal: Terminal) -> None:
    three_runs(terminal)
    heading, *lines = terminal("runs").splitlines()
    assert [line.split()[0] for line in lines] == ["run-3", "run-2", "run-1"]
    assert heading.split()[:3] == ["run", "pipeline", "status"]
    assert "running" in lines[0]
    assert "translate" in lines[1]
    assert "1 min 29 s" in lines[1]
    assert COST in lines[2]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--status", "failed"), ["run-2"]),
        (("--pipeline", "research"), ["run-3", "run-1"]),
        (("--limit", "1"), ["run-3"]),
        (("--limit", "2", "--all"), ["run-3", "run-2", "run-1"]),
        (("--since", "2026-11-29T23:53:21Z"), ["run-3", "run-2"]),
        (("--until", "2026-11-29T23:53:21Z"), ["run-1"]),
    ],
)
def test_runs_can_be_narrowed_down(
    terminal: Terminal, arguments: tuple[str, ...], expected: list[str]
) -> None:
    three_runs(terminal)
    found = terminal.json("runs", *arguments)
    assert [run["run_id"] for run in found["runs"]] == expected


def test_what_is_not_listed_is_said_to_be_there(terminal: Terminal) -> None:
    three_runs(terminal)
    assert "There are more" in terminal("runs", "--limit", "2")
    assert "There are more" not in terminal("runs", "--limit", "3")
    assert "next" in terminal.json("runs", "--limit", "2")


def test_json_of_the_list_is_the_apis(terminal: Terminal) -> None:
    three_runs(terminal)
    text = terminal("runs", "--json")
    page = msgspec.json.decode(text, type=shapes.RunPage)
    assert page.runs[2].totals.cost_usd_total == COST
    assert text == msgspec.json.encode(page).decode() + "\n"


def test_more_runs_than_a_page_are_each_listed_once(terminal: Terminal) -> None:
    for n in range(130):
        terminal.record(f"run-{n:03}", started(T0 + n * SECOND), counted=False)
    listed = [run["run_id"] for run in terminal.json("runs", "--all")["runs"]]
    assert listed == [f"run-{n:03}" for n in reversed(range(130))]
    assert len(terminal.json("runs", "--limit", "120")["runs"]) == 120


def test_an_empty_stage_says_what_to_do(terminal: Terminal) -> None:
    assert "runtally replay" in terminal("runs")
    assert terminal.json("runs") == {"runs": []}


@pytest.mark.parametrize("width", [70, 80, 100, 140, 200])
def test_names_of_any_script_are_aligned_and_no_digit_is_left_out(
    terminal: Terminal, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for n, name in enumerate(("翻译流水线", "plain", "한국어 🌏")):
        run_id = f"179599675980168303{n}-fa695653"
        terminal.record(run_id, started(T0, name), step(1, cost_usd=COST, phase=name), ended())
    heading, *lines = terminal("runs").splitlines()
    assert max(map(cell_len, lines)) <= width
    ids = "".join(_cut(line, 0, heading.index("status") - 1) for line in lines)
    assert all(f"179599675980168303{n}-fa695653" in ids.replace(" ", "") for n in range(3))
    starts = [cell_len(line.partition("succeeded")[0]) for line in lines if "succeeded" in line]
    assert starts == [heading.index("status")] * 3
    left, right = (heading.index(name) + len(name) for name in ("failed", "cost $"))
    assert "".join(_cut(line, left, right).strip() for line in lines) == COST * 3


def _cut(line: str, start: int, end: int) -> str:
    """The characters of a line that stand in these cells."""
    positions = itertools.accumulate(map(cell_len, line), initial=0)
    return "".join(c for c, at in zip(line, positions, strict=False) if start <= at < end)


def test_a_run_is_shown_with_what_to_look_at_first(terminal: Terminal) -> None:
    calls = [
        step(
            n,
            name=f"call-{n}",
            cost_usd=f"0.{n:03}",
            ended_at=T0 + n * SECOND + (100 - n) * SECOND,
            **({"status": "failed", "error": f"Error {n}"} if n % 5 == 0 else {}),
        )
        for n in range(1, 61)
    ]
    head = started(attributes={"customer": "c-17"})
    terminal.record("run-1", head, *calls, log(70, "one", "two"), ended(result="a\nb"))
    shown = terminal("show", "run-1")
    of = dict(itertools.pairwise(_sections(shown)))
    assert _names_in(of["Slowest calls"]) == [f"call-{n}" for n in range(1, 6)]
    assert _names_in(of["Dearest calls"]) == [f"call-{n}" for n in range(60, 55, -1)]
    assert _names_in(of["Failed calls: newest 10 of 12"]) == [
        f"call-{n}" for n in range(60, 10, -5)
    ]
    assert '{"customer":"c-17"}' in shown
    assert "Error 60" in shown
    assert "Result, 3 bytes\n  a\n  b" in shown
    assert "Last lines of log.\n  one\n  two" in shown
    assert "partial" not in shown


def _sections(shown: str) -> list[str]:
    """Each title, followed by what stands below it."""
    parts: list[str] = []
    for block in shown.split("\n\n"):
        title, _, rest = block.partition("\n")
        parts += [title.strip(), rest]
    return parts


def _names_in(table: str) -> list[str]:
    return [word for word in table.split() if word.startswith("call-")]


def test_a_running_run_says_that_its_phases_are_those_of_the_first_calls(
    terminal: Terminal,
) -> None:
    terminal.record("run-1", started(), *(step(n, phase="act") for n in range(150)))
    shown = terminal("show", "run-1")
    assert "running" in shown
    assert "150 calls" in shown
    assert "partial: phases of the first 100 of 150 calls" in shown


def test_what_to_look_at_first_is_found_in_bounded_memory() -> None:
    def calls() -> Iterator[shapes.Call]:
        for n in range(20_000):
            status: Literal["failed", "succeeded"] = "failed" if n % 2 else "succeeded"
            yield shapes.Call(
                step_id=step_id(n),
                kind="tool",
                status=status,
                started_at="",
                ended_at="",
                duration_ms=float(n * 7919 % 20_011),
                error="x" * 200,
            )

    tracemalloc.start()
    try:
        found = Highlights(calls())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000
    assert found.failures == 10_000
    slowest = [call.duration_ms for call in found.slowest.calls()]
    assert slowest == sorted((n * 7919 % 20_011 for n in range(20_000)), reverse=True)[:5]
    assert [call.step_id for call in found.failed] == [step_id(n) for n in range(19_981, 20_000, 2)]


def test_json_of_a_run_is_the_apis_with_every_call(terminal: Terminal) -> None:
    for some in itertools.batched(range(3_000), 100, strict=True):
        terminal.record("run-1", started(), *map(step, some), counted=False)
    terminal.record("run-1", ended())
    text = terminal("show", "run-1", "--json")
    detail = msgspec.json.decode(text, type=shapes.RunDetail)
    assert [call.step_id for call in detail.calls] == [step_id(n) for n in range(3_000)]
    assert strictly(text)["run"]["status"] == "succeeded"
    assert "3,000 calls" in terminal("show", "run-1")


def test_what_others_wrote_is_text_and_moves_no_cursor(terminal: Terminal) -> None:
    name, error = "[bold]n[/]\x1b[2J", "[/red]\x1b]0;title\x07"
    call = step(1, name=name, phase=name, status="failed", error=error)
    terminal.record("run-1", started(T0, name), call, log(2, name), ended(result=name, error=error))
    for arguments in (("show", "run-1"), ("runs",), ("insights", "--since", "2026-01-01T00:00:00Z"),
                      ("compare", "run-1", "run-1"), ("tail", "run-1")):  # fmt: skip
        shown = terminal(*arguments)
        assert "[bold]n[/]" in shown
        assert "\x1b" not in shown
        assert "\x07" not in shown


def test_a_payload_is_printed_byte_for_byte(terminal: Terminal) -> None:
    text = '{"n":9007199254740993,"x":1.10,"t":"你\\u4f60","deep":[[[]]],"big":"' + "語" * 400_000
    payload = msgspec.Raw((text + '"}').encode())
    call = msgspec.structs.replace(step(1), payload=payload)
    terminal.record("run-1", started(), call, step(2), ended())
    assert terminal("payload", "run-1", step_id(1)) == bytes(payload).decode()
    assert terminal.json("payload", "run-1", step_id(1))["payload_state"] == "ok"
    pretty = terminal("payload", "run-1", step_id(1), "--pretty")
    assert '\n  "n": 9007199254740993,\n  "x": 1.10,' in pretty
    event = json.loads(terminal("payload", "run-1", step_id(1), "--event"))
    assert event["step_id"] == step_id(1)
    assert event["payload"]["n"] == 9007199254740993


@pytest.mark.parametrize("which", ["none", "missing", "corrupt"])
def test_a_payload_that_cannot_be_had_says_why(terminal: Terminal, which: str) -> None:
    given = {} if which == "none" else {"payload": {"a": 1}}
    terminal.record("run-1", started(), step(1, **given), ended())
    objects = terminal.memory.s3.objects
    for key in list(objects):
        if which == "missing":
            del objects[key]
        elif which == "corrupt":
            objects[key] = b"x" * len(objects[key])
    with pytest.raises(LocalStageError, match=f"is {which}"):
        terminal("payload", "run-1", step_id(1))
    answer = strictly(terminal("payload", "run-1", step_id(1), "--json", code=1))
    assert answer["payload_state"] == which


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "run-9"),
        ("payload", "run-9", step_id(1)),
        ("payload", "run-1", step_id(9)),
        ("tail", "run-9"),
        ("compare", "run-1", "run-9"),
        ("show", "run-1", "--tenant", "other"),
        ("payload", "run-1", step_id(1), "--tenant", "other"),
        ("tail", "run-1", "--tenant", "other"),
    ],
)
def test_what_is_not_there_or_not_this_tenants_is_told_alike(
    terminal: Terminal, arguments: tuple[str, ...]
) -> None:
    terminal.record("run-1", started(), step(1, payload={}), ended())
    with pytest.raises(LocalStageError, match=r"there is no such run|has no such call") as error:
        terminal(*arguments)
    assert "runtally runs" in error.value.advice


def test_an_id_that_is_none_is_refused_with_its_name(terminal: Terminal) -> None:
    with pytest.raises(LocalStageError, match="run_id"):
        terminal("show", "a#b")


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "--since", "soon"),
        ("runs", "--status", "done"),
        ("runs", "--limit", "0"),
        ("show",),
    ],
)
def test_what_is_no_command_is_refused(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CycloptsError):
        terminal(*arguments)


def test_with_several_tenants_one_must_be_named(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal("tenants", "create", "beta")
    terminal.memory.dynamodb.settle()
    terminal.record("run-1", started(), tenant="beta")
    with pytest.raises(LocalStageError, match="acme, beta") as error:
        terminal("runs")
    assert "--tenant" in error.value.advice
    assert len(terminal.json("runs", "--tenant", "beta")["runs"]) == 1
    assert terminal.json("runs", "--tenant", "acme")["runs"] == []
    monkeypatch.setenv("RUNTALLY_TENANT_ID", "beta")
    assert len(terminal.json("runs")["runs"]) == 1


def test_the_tenants_of_what_is_sent_are_made_once(terminal: Terminal) -> None:
    for _ in range(2):
        register(terminal.stage, ["demo", "acme", "demo"])
    terminal.memory.dynamodb.settle()
    assert [tenant["tenant_id"] for tenant in terminal.json("tenants", "list")] == ["acme", "demo"]
    with pytest.raises(LocalStageError, match="no tenant id"):
        register(terminal.stage, ["a#b"])


def test_without_any_tenant_it_says_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LocalStageError, match="no tenants") as error:
        Terminal(capsys)("runs")
    assert "tenants create" in error.value.advice
