"""From all steps of a run to its phases: the fold behind SUMMARY, and the phase of a step in a
tree."""

import math
from collections.abc import Container, Iterable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from functions.core import caps
from functions.core.model import EXACT, PhaseSummary, Spread, StepRow, Summary, Totals
from runtally.names import grouped
from runtally.wire import PARENT_SUFFIX_LENGTH

FOLD_VERSION: Final = 2
"""Raised whenever the fold changes what it computes, so that a recount replaces older summaries."""

NO_PHASE: Final = "(no phase)"
OTHER_PHASES: Final = "(other phases)"

_LONGEST_ID: Final = 19 + 1 + PARENT_SUFFIX_LENGTH
_ENTRY_OVERHEAD = 380
"""Bytes of a phase's entry besides its names: attribute names, and numbers at their longest."""


def summarize_steps(steps: Sequence[StepRow], at_total: int) -> Summary:
    """Fold every step of a run, given in step order, into its summary."""
    return Summary(
        totals=Totals.of(steps),
        phases=tuple(_capped(_by_first_start(steps))),
        at_total=at_total,
        fold_version=FOLD_VERSION,
        spread=_spread_of(steps) if steps else None,
    )


def phases_of(steps: Sequence[StepRow]) -> dict[str, str]:
    """The phase of each step, by step id.

    Its own; else that of the nearest ancestor that has one; else, of itself and its ancestors below
    the root, the outermost hint; else the outermost name, with `*` for ids and a counter at its
    end; else NO_PHASE. A parent that is not among the steps counts as a root, and a cycle of
    parents as having none, so that any set of steps has an answer.
    """
    family = _Family(steps)
    labels: dict[str, _Labels] = {}
    phases: dict[str, str] = {}
    for step in steps:
        for node in reversed(family.path_up(step, labels)):
            labels[node.step_id] = _labels_of(node, labels.get(family.parent_of(node), _NO_LABELS))
        phase, hint, name, model = labels[step.step_id]
        phases[step.step_id] = phase or hint or (name and grouped(name, model)) or NO_PHASE
    return phases


class _Labels(NamedTuple):
    """What a step may be called by, the best first."""

    phase: str
    hint: str
    name: str
    model: str


_NO_LABELS: Final = _Labels("", "", "", "")


def _labels_of(step: StepRow, above: _Labels) -> _Labels:
    if not step.parent_id:
        return _Labels(step.phase, "", "", "")
    named = above if above.name else _Labels("", "", step.name or step.agent, step.model)
    return _Labels(
        step.phase or above.phase, above.hint or step.phase_hint, named.name, named.model
    )


class _Family:
    """Steps by their ids, and by what alone some children know of a parent's id."""

    def __init__(self, steps: Sequence[StepRow]) -> None:
        self._by_id = {step.step_id: step for step in steps}
        self._ids = {
            step.step_id[-PARENT_SUFFIX_LENGTH:]: step.step_id
            for step in steps
            if len(step.step_id) == _LONGEST_ID
        }

    def parent_of(self, step: StepRow) -> str:
        """The whole id of the parent; empty without one."""
        given = step.parent_id or ""
        return self._ids.get(given, given)

    def path_up(self, step: StepRow, known: Container[str]) -> list[StepRow]:
        """The step and its ancestors, as far up as they are not known yet; loops, not recursion: a
        chain of parents may be as long as the run."""
        path: list[StepRow] = []
        seen: set[str] = set()
        node: StepRow | None = step
        while node is not None and node.step_id not in known and node.step_id not in seen:
            path.append(node)
            seen.add(node.step_id)
            node = self._by_id.get(self.parent_of(node)) if node.parent_id else None
        return path


def _by_first_start(steps: Sequence[StepRow]) -> list[tuple[str, list[StepRow]]]:
    phase_of = phases_of(steps)
    groups: dict[str, list[StepRow]] = {}
    for step in steps:
        groups.setdefault(phase_of[step.step_id], []).append(step)
    return sorted(groups.items(), key=lambda group: (min(s.started_at for s in group[1]), group[0]))


def _capped(groups: Sequence[tuple[str, list[StepRow]]]) -> Iterable[PhaseSummary]:
    """The first phases one by one, as many as fit; the rest under one entry that says how many."""
    size = 0
    for index, (phase, steps) in enumerate(groups):
        entry = _summarize_phase(phase, steps)
        size += _size_of(entry)
        if index >= caps.PHASES or size > caps.PHASES_BYTES:
            rest = [step for _, others in groups[index:] for step in others]
            yield _summarize_phase(OTHER_PHASES, rest, rolled_up=len(groups) - index)
            return
        yield entry


def _size_of(entry: PhaseSummary) -> int:
    names = (entry.phase, *entry.agents, *entry.models)
    return _ENTRY_OVERHEAD + sum(len(name.encode()) + 1 for name in names)


def _summarize_phase(phase: str, steps: Sequence[StepRow], rolled_up: int = 0) -> PhaseSummary:
    spread = _spread_of(steps)
    totals = Totals.of(steps)
    first_start = min(step.started_at for step in steps)
    last_end = max(step.started_at + step.duration_ns for step in steps)
    return PhaseSummary(
        phase=caps.cut(phase, caps.NAME),
        calls=totals.agents_total,
        failed=totals.failed_total,
        cost_usd=totals.cost_usd_total,
        cost_unknown=totals.cost_unknown_total,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cached_tokens=totals.cached_tokens,
        first_start=first_start,
        last_end=last_end,
        wall_ms=_milliseconds(last_end - first_start),
        busy_ms=_milliseconds(_busy(steps)),
        p50_ms=spread.p50_ms,
        p95_ms=spread.p95_ms,
        max_ms=spread.max_ms,
        agents=_first_names(step.agent for step in steps),
        models=_first_names(step.model for step in steps),
        rolled_up=rolled_up,
    )


def _spread_of(steps: Sequence[StepRow]) -> Spread:
    durations = sorted(step.duration_ns for step in steps)
    return Spread(
        p50_ms=_milliseconds(_percentile(durations, 50)),
        p95_ms=_milliseconds(_percentile(durations, 95)),
        max_ms=_milliseconds(durations[-1]),
    )


def _busy(steps: Sequence[StepRow]) -> int:
    """Nanoseconds in which at least one of the steps was running."""
    busy = 0
    until = 0
    for start, end in sorted((s.started_at, s.started_at + s.duration_ns) for s in steps):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


def _percentile(ordered: Sequence[int], percent: int) -> int:
    """Nearest rank: the smallest value that at least `percent` of all values do not exceed."""
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


def _milliseconds(nanoseconds: int) -> Decimal:
    """Milliseconds with three decimals at most; below a microsecond clocks do not tell."""
    return EXACT.normalize(Decimal(nanoseconds // 1000).scaleb(-3, EXACT))


def _first_names(names: Iterable[str]) -> tuple[str, ...]:
    distinct: dict[str, None] = {}
    for name in names:
        if name and name not in distinct:
            distinct[caps.cut(name, caps.NAME)] = None
            if len(distinct) == caps.NAMES_OF_A_PHASE:
                break
    return tuple(distinct)
