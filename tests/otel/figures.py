"""What spans are recorded as, in the figures that samples are checked by."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

import msgspec

from functions.core.model import StepRow
from functions.core.phases import phases_of
from runtally import wire
from runtally.otel.spans import Span
from runtally.otel.steps import events_of_span


class Tokens(NamedTuple):
    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Figures(NamedTuple):
    """A run's; `pipeline` and `status` are empty where its start and its end were not told."""

    pipeline: str
    status: str
    steps: int
    failed: int
    depth: int
    phases: Mapping[str, int]
    """Steps by phase."""
    models: frozenset[str] = frozenset()
    """Of the steps whose tokens count."""
    tokens: Tokens = Tokens()
    cost: Decimal = Decimal(0)
    """As reported; what was computed is not in it."""


class Recorded(NamedTuple):
    """The events of one run, each span's once: a span that comes again changes nothing."""

    steps: list[wire.Step]
    started: list[wire.RunStarted]
    ended: list[wire.RunEnded]

    @property
    def phases(self) -> dict[str, str]:
        return phases_of([row_of(step) for step in self.steps])

    @property
    def figures(self) -> Figures:
        return Figures(
            pipeline=self.started[0].pipeline if self.started else "",
            status=self.ended[0].status if self.ended else "",
            steps=len(self.steps),
            failed=sum(step.status == "failed" for step in self.steps),
            depth=self._depth,
            phases=Counter(self.phases.values()),
            models=frozenset(s.model for s in self.steps if s.model and s.kind == "model"),
            tokens=Tokens(
                input=sum(step.input_tokens or 0 for step in self.steps),
                output=sum(step.output_tokens or 0 for step in self.steps),
                cached=sum(step.cached_tokens or 0 for step in self.steps),
                cache_write=sum(step.cache_write_tokens or 0 for step in self.steps),
                reasoning=sum(step.reasoning_tokens or 0 for step in self.steps),
            ),
            cost=sum((Decimal(step.cost_usd or 0) for step in self.steps), Decimal(0)),
        )

    @property
    def _depth(self) -> int:
        """Steps from the root of the tree to its lowest leaf, as the parents' ids tell."""
        suffix = wire.PARENT_SUFFIX_LENGTH
        parents = {step.step_id[-suffix:]: step.parent_id for step in self.steps}

        def level(step_id: str | None) -> int:
            return 0 if step_id not in parents else 1 + level(parents[step_id])

        return max(map(level, parents))


def recorded(spans: Iterable[Span]) -> dict[str, Recorded]:
    """By run id, in the order in which their first steps begin."""
    events: dict[str, dict[bytes, wire.RunEvent]] = {}
    for span in spans:
        mapped = events_of_span(span)
        events.setdefault(mapped.run_id, {}).update(
            (msgspec.json.encode(event), event) for event in mapped.events
        )
    runs = {
        run_id: Recorded(
            [e for e in unique.values() if isinstance(e, wire.Step)],
            [e for e in unique.values() if isinstance(e, wire.RunStarted)],
            [e for e in unique.values() if isinstance(e, wire.RunEnded)],
        )
        for run_id, unique in events.items()
    }
    return dict(sorted(runs.items(), key=lambda run: min(s.started_at for s in run[1].steps)))


def row_of(step: wire.Step) -> StepRow:
    return StepRow(
        step_id=step.step_id,
        kind=step.kind,
        status=step.status,
        started_at=step.started_at,
        ended_at=step.ended_at,
        name=step.name or "",
        phase=step.phase or "",
        phase_hint=step.phase_hint or "",
        agent=step.agent or "",
        parent_id=step.parent_id,
    )


def payload_of(step: wire.Step) -> bytes:
    assert isinstance(step.payload, msgspec.Raw)
    return bytes(step.payload)
