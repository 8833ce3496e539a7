"""What the command line promises to scripts: the last line, the exit code."""

import json
from decimal import Decimal

import pytest

from local import main
from local.commands import LocalStageError
from local.demo import Demo
from tests.unit.local.test_demo import RESULT


@pytest.mark.parametrize(("mismatches", "code"), [([], 0), (["run-1: agents_total is 2"], 1)])
def test_demo_ends_with_one_json_object_and_fails_on_a_mismatch(
    mismatches: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Demo([RESULT], mismatches, seconds=12.34, write_units=Decimal("3.3"))
    monkeypatch.setattr(main, "run_demo", lambda _: shown)
    assert main.demo(as_json=True) == code
    output = capsys.readouterr()
    answer = json.loads(output.out.splitlines()[-1])
    assert [run["run_id"] for run in answer["runs"]] == ["run-1"]
    assert answer["seconds"] == 12.3
    assert answer["write_units_per_step"] == 1.1
    assert all(mismatch in output.err for mismatch in mismatches)


def test_what_cannot_work_ends_with_its_reason_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> Demo:
        raise LocalStageError("It is [broken].", "Mend it.")

    monkeypatch.setattr(main, "run_demo", fail)
    monkeypatch.setattr("sys.argv", ["runtally", "demo"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as exited:
        main.app()
    assert exited.value.code == 1
    shown = capsys.readouterr().err
    assert "It is [broken]." in shown
    assert "Mend it." in shown
