"""Play schedules: `python -m tests.simulation --schedules 20000 --seed 1 --json`.

Exits with 1 when something did not hold, and says with which seed and which faults.
"""

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.progress import Progress

from tests.simulation.bugs import BUGS, FOCUS
from tests.simulation.explorer import Explored, explore
from tests.simulation.faults import kinds_of

_SCHEDULES_A_PART = 250


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1_000, help="how many to play")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; one a schedule")
    parser.add_argument("--processes", type=int, default=2, help="how many at once")
    parser.add_argument("--bugs", action="store_true", help="plant each bug, and find it")
    parser.add_argument("--plant", choices=BUGS, metavar="BUG", help="play with this one planted")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--report", type=Path, help="also keep the JSON in this file, part by part")
    given = parser.parse_args()
    answer = _find_bugs(given) if given.bugs else _explore(given)
    text = json.dumps(answer, indent=None if given.json else 2, ensure_ascii=False)
    print(text)
    return 1 if answer["violations"] else 0


def _explore(given: argparse.Namespace) -> dict[str, object]:
    """All schedules, a part at a time, on several processes."""
    whole = Explored()
    started = time.monotonic()
    last = given.seed + given.schedules
    parts = [
        range(first, min(first + _SCHEDULES_A_PART, last))
        for first in range(given.seed, last, _SCHEDULES_A_PART)
    ]
    with ProcessPoolExecutor(given.processes) as pool, Progress(disable=given.json) as progress:
        task = progress.add_task("schedules", total=given.schedules)
        waiting = [pool.submit(_explore_part, part, given.plant) for part in parts]
        for future in as_completed(waiting):
            found = future.result()
            whole.add(found)
            whole.seconds = time.monotonic() - started
            progress.advance(task, found.schedules)
            if given.report:  # an hour's work must not hang on its last minute
                given.report.write_text(json.dumps(_answer(whole), indent=2) + "\n")
    return _answer(whole)


def _answer(whole: Explored) -> dict[str, object]:
    return {**whole.as_json(), "empty_cells": empty_cells(whole.coverage)}


def _explore_part(seeds: range, planted: str | None) -> Explored:
    return explore(seeds, BUGS[planted]) if planted else explore(seeds)


def _find_bugs(given: argparse.Namespace) -> dict[str, object]:
    """Which schedule finds which planted bug; one that none finds counts as a violation."""
    found: dict[str, object] = {}
    missed: list[str] = []
    for name, planted in BUGS.items():
        seeds = range(given.seed, given.seed + given.schedules)
        focus = FOCUS.get(name, {})
        explored = explore(seeds, planted, focus=focus, most_violations=1)
        if explored.violations:
            violation = explored.violations[0]
            found[name] = {"schedules": explored.schedules, **violation.as_json()}
        else:
            missed.append(name)
    return {"violations": len(missed), "found": found, "missed": missed}


def empty_cells(coverage: Counter[str]) -> list[str]:
    """What a kind of request never met, though it can."""
    labels = {cell.rpartition("/")[0] for cell in coverage if cell.partition(".")[0] in _SERVICES}
    cells = [f"{label}/{kind}" for label in sorted(labels) for kind in kinds_of(label)]
    return [cell for cell in cells if not coverage[cell]]


_SERVICES = frozenset({"dynamodb", "events", "s3", "sqs"})

if __name__ == "__main__":
    sys.exit(main())
