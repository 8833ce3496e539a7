"""Bug fixing: edit, test, read the failure, try again. Shows failed steps and a failed run.

Two runs: one agent fixes the bug at the fourth try, the other runs out of tries. A failing command
raises, and its steps are recorded as failed; whoever catches the exception goes on, and so does
the run.
"""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from local.samples.scripted_model import ScriptedModel
from runtally import Recorder, Step

PIPELINE = "bugfix"
MAX_TRIES = 4
TEST = """\
from median import median
assert median([3, 1, 2]) == 2, f"odd count: {median([3, 1, 2])}"
assert median([4, 1, 3, 2]) == 2.5, f"even count: {median([4, 1, 3, 2])}"
"""
EDITS = {
    "start": "def median(xs):\n    return xs[len(xs) // 2]\n",
    "SyntaxError": "def median(xs):\n    return sorted(xs)[len(xs) // 2]\n",
    "odd count": "def median(xs):\n    return sorted(xs)[len(xs) // 2\n",
    "even count": (
        "def median(xs):\n    xs, half = sorted(xs), len(xs) // 2\n"
        "    return xs[half] if len(xs) % 2 else (xs[half - 1] + xs[half]) / 2\n"
    ),
}


class CommandFailed(Exception):  # noqa: N818
    """A command of the agent ended with another code than 0."""


class OutOfTries(Exception):  # noqa: N818
    """The bug is still there."""


def main(recorder: Recorder) -> None:
    fix_bug(recorder, ScriptedModel(careful, name="careful-1"))
    with suppress(OutOfTries):  # the run is recorded as failed before this is reached
        fix_bug(recorder, ScriptedModel(lambda _: EDITS["start"], name="stubborn-1"))


def careful(prompt: str) -> str:
    return next(edit for symptom, edit in EDITS.items() if symptom in prompt)


def fix_bug(recorder: Recorder, model: ScriptedModel) -> None:
    with (
        recorder.run(pipeline=PIPELINE, attributes={"model": model.name}) as run,
        TemporaryDirectory() as folder,
    ):
        workspace = Path(folder)
        with run.step("set up", phase="set up", kind="tool"):
            (workspace / "test_median.py").write_text(TEST)
        seen = "start"
        for number in range(1, MAX_TRIES + 1):
            try:
                with run.step(f"try {number}", phase="fix", agent="fixer", kind="agent") as step:
                    edit(step, workspace / "median.py", model.ask(step, f"Fix median: {seen}"))
                    execute(step, workspace, "test_median.py")
            except CommandFailed as failure:
                seen = str(failure)
                run.log(f"try {number}: {seen}")
            else:
                run.result = {"tries": number, "fixed": (workspace / "median.py").read_text()}
                return
        raise OutOfTries(f"{MAX_TRIES} tries")


def edit(caller: Step, path: Path, text: str) -> None:
    with caller.step("edit_file", kind="tool") as step:
        path.write_text(text)
        step.set(payload={"path": path.name, "text": text})


def execute(caller: Step, workspace: Path, script: str) -> None:
    """Run a script in the workspace. Raises CommandFailed with the last line that it printed."""
    with caller.step("shell", kind="tool", attributes={"command": f"python {script}"}) as step:
        command = [sys.executable, "-B", script]
        done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)  # noqa: S603
        output = (done.stdout + done.stderr).replace(str(workspace), ".")
        step.set(payload={"returncode": done.returncode, "output": output})
        if done.returncode:
            raise CommandFailed(output.strip().splitlines()[-1])


if __name__ == "__main__":
    with Recorder.from_environment() as to_queue:
        main(to_queue)
