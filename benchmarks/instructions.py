"""Instructions that a piece of Python takes, counted by callgrind: nearly the same on any machine.

System calls are not among them: the kernel's share is not in here.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.missing import tool

type Work = Callable[[], object]

_HERE: Final = Path(__file__).parent.parent


def of_works(works: str, environment: Mapping[str, str]) -> dict[str, int]:
    """Instructions by name of the works that a function returns, given as `module:function`.

    The function is called, without arguments, in a process with this environment besides its
    parent's. Each work is done in a fork of that process, and what a fork takes by itself is
    subtracted, so that nothing is counted but the work. Raises NotHere without valgrind, and
    RuntimeError when a work failed.
    """
    module, _, function = works.partition(":")
    printed, collected = _counted(
        "from benchmarks.instructions import in_forks\n"
        f"from {module} import {function} as works\n"
        "in_forks(works())",
        environment,
        _HERE,
    )
    pids: dict[str, int] = json.loads(printed)
    totals = {name: collected[pid] for name, pid in pids.items()}
    nothing = totals.pop("")
    return {name: total - nothing for name, total in totals.items()}


def of_program(program: str, environment: Mapping[str, str], folder: Path = _HERE) -> int:
    """Instructions of a whole process that runs a program in a folder, the interpreter's start
    among them. Raises as above."""
    _, collected = _counted(program, environment, folder)
    return sum(collected.values())


def _counted(
    program: str, environment: Mapping[str, str], folder: Path
) -> tuple[str, dict[int, int]]:
    """What the program printed, and the instructions of its processes by their ids."""
    valgrind = [
        str(tool("valgrind", "valgrind")),
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ]
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [*valgrind, sys.executable, "-B", "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "0", **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program}\nended with {done.returncode}:\n{done.stderr}")
    lines = re.findall(r"==(\d+)== Collected : (\d+)", done.stderr)
    return done.stdout, {int(pid): int(count) for pid, count in lines}


def in_forks(works: Mapping[str, Work]) -> None:
    """Do each work in a fork of this process, and print their process ids as JSON, by name."""
    pids = {name: _in_a_fork(work) for name, work in {"": lambda: None, **works}.items()}
    sys.stdout.write(json.dumps(pids))


def _in_a_fork(work: Work) -> int:
    pid = os.fork()
    if pid == 0:
        failed = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            work()
            sys.stdout.flush()
            failed = 0
        except BaseException:  # noqa: BLE001 - nothing of the parent's may run in here
            sys.excepthook(*sys.exc_info())
        os._exit(failed)
    if status := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        sys.exit(f"a work ended with {status}")
    return pid
