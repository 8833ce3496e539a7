"""Plays schedules, each from its seed alone, and makes a violation as small as it gets."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from tests.simulation import checks, scenario
from tests.simulation.world import Plan, World

type Planted = Callable[[], AbstractContextManager[object]]
"""A bug that is there while a schedule is played; see bugs.py."""


@dataclass(frozen=True)
class Violation:
    """What did not hold, and the least that brings it about again."""

    seed: int
    what: str
    faults: tuple[tuple[int, str, str], ...] = ()

    def as_json(self) -> dict[str, object]:
        faults = [{"call": n, "request": label, "fault": kind} for n, label, kind in self.faults]
        return {"seed": self.seed, "what": self.what, "faults": faults}


@dataclass
class Explored:
    schedules: int = 0
    calls: int = 0
    seconds: float = 0.0
    coverage: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: "Explored") -> None:
        self.schedules += other.schedules
        self.calls += other.calls
        self.coverage.update(other.coverage)
        self.violations += other.violations

    def as_json(self) -> dict[str, object]:
        return {
            "schedules": self.schedules,
            "violations": len(self.violations),
            "found": [violation.as_json() for violation in self.violations],
            "calls": self.calls,
            "coverage": dict(sorted(self.coverage.items())),
            "seconds": round(self.seconds, 1),
        }


def explore(
    seeds: Iterable[int],
    planted: Planted = nullcontext,
    *,
    focus: Mapping[str, Any] = MappingProxyType({}),
    most_violations: int = 3,
    on_schedule: Callable[[], None] = lambda: None,
) -> Explored:
    """Play a schedule a seed, until some violations are found."""
    explored = Explored()
    started = time.monotonic()
    for seed in seeds:
        plan = Plan.of(seed, focus=focus)
        found = play(plan, explored, planted)
        on_schedule()
        if found is not None:
            explored.violations.append(smallest(plan, found, planted))
            if len(explored.violations) >= most_violations:
                break
    explored.seconds = time.monotonic() - started
    return explored


def play(plan: Plan, explored: Explored, planted: Planted = nullcontext) -> Violation | None:
    """One schedule, from the first message to rest, repaired and looked at."""
    sent = scenario.draw(random.Random(plan.seed), move=plan.lake)  # noqa: S311 - reproducible
    if plan.deletes:
        sent.append(scenario.neighbour(random.Random(plan.seed + 10), move=plan.lake))  # noqa: S311
    world = World(plan, sent, explored.coverage)
    after_each = checks.AfterEach(world)
    violated: list[str] = []

    def look(label: str) -> None:
        # Kept, not raised: a handler under test would take it for a fault of its own.
        if not violated:
            try:
                after_each(label)
            except Exception as error:  # noqa: BLE001 - whatever keeps a check from passing
                violated.append(f"after {label}: {type(error).__name__}: {error}")

    world.network.after_each = look
    try:
        with world.small_numbers(), planted():
            world.run()
            world.repair()
            checks.at_rest(world)
            checks.api_reads_back(world)
    except Exception as error:  # noqa: BLE001 - as above
        violated.append(f"at rest: {type(error).__name__}: {error}")
    explored.schedules += 1
    explored.calls += world.network.calls
    if not violated:
        return None
    return Violation(plan.seed, violated[0], tuple(world.faults.happened))


def smallest(plan: Plan, found: Violation, planted: Planted = nullcontext) -> Violation:
    """The same violation with as few faults of requests as it takes."""
    kept = [number for number, _, _ in found.faults]
    for number in list(kept):
        fewer = frozenset(kept) - {number}
        again = play(replace(plan, only=fewer), Explored(), planted)
        if again is not None:
            kept, found = sorted(fewer), again
    return found
