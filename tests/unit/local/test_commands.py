"""Programs run for the user: what fails says so, with its last words and what to do."""

import sys
from pathlib import Path

import pytest

from local import commands
from local.commands import Command, LocalStageError


def python(program: str, log: Path) -> Command:
    return Command([sys.executable, "-c", program], {}, log, "Try something else.")


def test_success_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "log.txt"
    with python("print('fine')", log) as command:
        command.finish(within_s=30)
    assert log.read_text() == "fine\n"


def test_failure_shows_the_end_of_the_output_and_what_to_do(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    program = "import sys\nfor n in range(99): print('line', n)\nsys.exit('the reason')"
    with python(program, log) as command, pytest.raises(LocalStageError) as raised:
        command.finish(within_s=30)
    text = str(raised.value)
    assert "exit code 1" in text
    assert "the reason" in text
    assert "line 98" in text
    assert "line 50" not in text
    assert str(log) in text
    assert text.endswith("Try something else.")


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    command = python("import time; time.sleep(600)", tmp_path / "log.txt")
    with command, pytest.raises(LocalStageError, match=r"within 0\.5 s"):
        command.finish(within_s=0.5)


def test_a_missing_uv_names_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(commands, "_UV_PLACES", ())
    with pytest.raises(LocalStageError, match="make setup"):
        commands.uv()
