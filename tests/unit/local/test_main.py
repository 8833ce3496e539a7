"""What the command line promises to scripts: the last line, the exit code."""

import json
from decimal import Decimal

import pytest

from functions.core.keys import RunRef
from local import main, stage_commands
from local.commands import LocalStageError
from local.demo import Demo
from tests.unit.local.test_demo import RESULT
from tests.unit.sdk.test_imports import loaded_by


@pytest.mark.parametrize(("mismatches", "code"), [([], 0), (["run-1: agents_total is 2"], 1)])
def test_demo_ends_with_one_json_object_and_fails_on_a_mismatch(
    mismatches: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Demo(
        [RunRef("acme", "run-1")], [RESULT], mismatches, seconds=12.34, write_units=Decimal("3.3")
    )
    monkeypatch.setattr(stage_commands, "run_demo", lambda *_: shown)
    assert stage_commands.demo(as_json=True) == code
    output = capsys.readouterr()
    answer = json.loads(output.out.splitlines()[-1])
    assert [run["run_id"] for run in answer["runs"]] == ["run-1"]
    assert answer["seconds"] == 12.3
    assert answer["write_units_per_step"] == 1.1
    assert all(mismatch in output.err for mismatch in mismatches)


def test_what_cannot_work_ends_with_its_reason_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Demo:
        raise LocalStageError("It is [broken].", "Mend it.")

    monkeypatch.setattr(stage_commands, "run_demo", fail)
    monkeypatch.setattr("sys.argv", ["runtally", "demo"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as exited:
        main.app()
    assert exited.value.code == 1
    shown = capsys.readouterr().err
    assert "It is [broken]." in shown
    assert "Mend it." in shown


def test_every_command_has_help_that_says_what_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def help_of(*command: str) -> str:
        with pytest.raises(SystemExit) as exited:
            main._commands([*command, "--help"])
        assert exited.value.code == 0
        return capsys.readouterr().out

    listed = help_of()
    for group in ("Local stage", "Read", "Operate", "Access"):
        assert f"─ {group} ─" in listed
    read = (
        "runs", "show", "tail", "payload", "insights", "compare", "export", "query", "reconcile",
        "doctor",
    )  # fmt: skip
    for name in read:
        assert f"│ {name} " in listed
        shown = help_of(name)
        for option in ("--json", "--stage", "--profile", "--region"):
            assert option in shown
        assert ("--tenant" in shown) == (name != "doctor")
        assert "--connect" not in shown
        assert "--sleep" not in shown
        assert "--clouds" not in shown


def test_the_command_line_starts_without_duckdb_which_takes_as_long_as_all_the_rest() -> None:
    assert not loaded_by("import local.main") & {"duckdb", "_duckdb"}
