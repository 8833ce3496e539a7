"""What the workers of a history tell of a run, and what may be seen of it afterwards."""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from functions.core import caps, counts, keys
from functions.core.keys import RunRef
from runtally import wire
from tests import build, invariants
from tests.build import SECOND, T0
from tests.memory_stage import MemoryStage

TENANTS: Final = ("acme", "globex")
PIPELINES: Final = ("search", "write")
STATUSES: Final = ("succeeded", "failed", "cancelled")


def secret_of(tenant_id: str) -> str:
    """Stands in every text of a tenant, cut nowhere: no other may ever see it."""
    return f"{tenant_id}'s own"


class Wish(NamedTuple):
    """An event that a worker wants to send. What it says counts only the first time; afterwards
    the same kind and number is the same event again."""

    kind: str
    number: int
    says: dict[str, Any]


def _wishes_of(kind: str, most: int, **says: st.SearchStrategy[Any]) -> st.SearchStrategy[Wish]:
    return st.builds(Wish, st.just(kind), st.integers(1, most), st.fixed_dictionaries(says))


_LATE: Final = 20
_STEPS: Final = _wishes_of(
    "step",
    8,
    phase=st.sampled_from((None, "plan", "act")),
    status=st.sampled_from(STATUSES),
    cost_usd=st.sampled_from((None, "0.1", "3.000000000000000001", "999999999999")),
    input_tokens=st.sampled_from((None, 7)),
    parent=st.none() | st.integers(1, 8),
    payload=st.booleans(),
)
ENDS: Final = _wishes_of("end", 3, status=st.sampled_from(STATUSES), result=st.booleans())
WISHES: Final = st.one_of(
    _STEPS,
    _STEPS,
    _STEPS,
    _wishes_of("log", 3),
    _wishes_of("start", 3, pipeline=st.sampled_from(PIPELINES)),
    ENDS,
)


@dataclass(eq=False)
class Told:
    """One run. Its first step begins `begins` seconds after T0."""

    ref: RunRef
    buckets: int
    begins: int
    opened_at: int
    events: dict[tuple[str, int], wire.Event] = field(default_factory=dict)
    acknowledged: dict[str, str] = field(default_factory=dict)
    """Digests of the steps that must be there by now, by their ids."""
    totals: dict[str, Any] = field(default_factory=dict)
    covered: int = 0
    shown: int = 0
    """How many calls a reader was told of."""
    late: int = 0

    def __repr__(self) -> str:
        return f"<{self.ref.tenant_id} {self.ref.run_id}>"

    @property
    def steps(self) -> dict[str, wire.Step]:
        return {e.step_id: e for e in self.events.values() if isinstance(e, wire.Step)}

    def step_id(self, number: int) -> str:
        return build.step_id(self.begins + number)

    @property
    def ended(self) -> bool:
        return any(kind == "end" for kind, _ in self.events)

    def late_step(self) -> Wish:
        """A step that was never told of before."""
        self.late += 1
        return Wish("step", _LATE + self.late, {"cost_usd": "0.1"})

    def event(self, wish: Wish) -> wire.Event:
        key = (wish.kind, wish.number)
        if key not in self.events:
            self.events[key] = self._make(wish.kind, self.begins + wish.number, dict(wish.says))
        return self.events[key]

    def _make(self, kind: str, n: int, says: dict[str, Any]) -> wire.Event:
        secret = secret_of(self.ref.tenant_id)
        if kind == "log":
            return build.log(n, secret)
        if kind == "start":
            # The later its number, the earlier it is: what arrives last may count.
            at = T0 + (2 * self.begins - n) * SECOND
            pipeline = f"{secret} {says['pipeline']}"
            return build.started(at, pipeline, attributes={"note": secret})
        if kind == "end":
            at = T0 + (self.begins + 200 + self.begins - n) * SECOND
            result = secret if says.pop("result") else None
            return build.ended(at, result=result, error=secret, **says)
        parent, payload = says.pop("parent", None), says.pop("payload", False)
        phase = says.pop("phase", None)
        return build.step(
            n,
            name=f"{secret} {n}",
            phase=None if phase is None else f"{secret} {phase}",
            parent_id=None if parent is None else self.step_id(parent),
            payload={"text": secret} if payload else None,
            **says,
        )

    def is_acknowledged(self, events: list[wire.Event]) -> None:
        steps = [event for event in events if isinstance(event, wire.Step)]
        self.acknowledged |= {s.step_id: wire.digest(wire.encode_event(s)) for s in steps}

    def check(self, stage: MemoryStage) -> None:
        """I1 to I6, as far as they hold at every moment."""
        invariants.pointers_hold(stage, self.ref)
        stored = {
            item[keys.SORT].removeprefix(keys.STEP_PREFIX): item["digest"]
            for item in stage.items_of(self.ref, keys.STEP_PREFIX)
        }
        assert self.acknowledged.items() <= stored.items(), "I1: acknowledged, and not there"
        assert stored.keys() <= self.steps.keys(), "I2: invented"
        totals = stage.item(self.ref, keys.TOTALS) or {}
        for name in invariants.sums_of([]):
            assert totals.get(name, 0) >= self.totals.get(name, 0), f"I3: {name} fell"
        self.totals = totals
        assert totals.get("agents_total", 0) <= len(stored), "I3: more counted than stored"
        preview = (stage.item(self.ref, keys.PREVIEW) or {}).get(counts.PREVIEW_STEPS, [])
        assert len(preview) <= caps.PREVIEW_ENTRIES, "I4: the preview is too long"
        shown = {entry[0] for entry in preview}
        assert len(shown) == len(preview), "I4: a call twice in the preview"
        assert shown <= stored.keys(), "I4: a call that is not there"
        summary = stage.item(self.ref, keys.SUMMARY) or {}
        covered = int(summary.get("agents_total", 0))
        assert summary.get("at_total", 0) <= covered, "I5: it would pass over what it never saw"
        assert self.covered <= covered <= len(stored), (
            "I5: a summary of fewer calls, or of too many"
        )
        self.covered = covered
