"""Sweeps at any moment change nothing of what a run becomes: the same events, the same run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from functions.core import items, keys
from functions.core.turns import TURN_NS
from runtally import wire
from tests import build, invariants
from tests.build import RUN, SECOND, T0
from tests.memory_stage import MemoryStage
from tests.simulation.quiet import quiet

LATE_NS = T0 + 30_000 * SECOND

events = st.one_of(
    st.integers(1, 9).map(lambda n: build.step(n, cost_usd=f"0.{n}")),
    st.integers(4_000, 4_003).map(build.step),  # more than an hour later
    st.integers(10, 12).map(lambda n: build.log(n, "x")),
    st.sampled_from([None, 1, 20_000]).map(lambda s: build.started(stale_after_s=s)),
    st.just(build.ended(at=T0 + 9_000 * SECOND)),
)
moments = st.sampled_from(["sweep", "drain", "nothing"])


def state_of(stage: MemoryStage) -> dict[tuple[str, str], Any]:
    """At rest, after a last sweep, in which all have their turn. How far TOTALS were when a recount
    was asked for is bookkeeping, and a run that is open and not silent may have a summary from when
    it was."""
    stage.drain()
    stage.now_ns = LATE_NS
    last = replace(stage.sweep_parts.sweep, every_s=TURN_NS // SECOND)
    stage.sweep_parts = replace(stage.sweep_parts, sweep=last)
    stage.sweep()
    stage.drain()
    state = invariants.final_state(stage, RUN)
    for (_, sort), item in state.items():
        if sort == keys.RUN:
            item.pop(items.STALE_COUNTED, None)
            status = item["status"]
    return {key: item for key, item in state.items() if status != "running" or key[1] != "SUMMARY"}


def played(told: Sequence[wire.Event], between: Sequence[str]) -> MemoryStage:
    stage = quiet(MemoryStage())
    for event, moment in zip(told, between, strict=True):
        assert stage.ingest(build.body(event)) == []
        stage.now_ns += 1_500 * SECOND
        if moment == "sweep":
            stage.sweep()
        elif moment == "drain":
            stage.drain()
    return stage


@given(
    st.lists(events, min_size=1, max_size=9, unique_by=wire.encode_event).flatmap(
        lambda told: st.tuples(
            st.just(told),
            st.permutations(told),
            st.lists(moments, min_size=len(told), max_size=len(told)),
        )
    )
)
def test_whenever_the_sweep_comes_the_run_ends_up_the_same(
    drawn: tuple[list[wire.Event], list[wire.Event], list[str]],
) -> None:
    told, shuffled, between = drawn
    starts = [event for event in told if isinstance(event, wire.RunStarted)]
    if len(starts) > 1:  # which of them counts is not about sweeps
        told = [event for event in told if event not in starts[1:]]
        shuffled = [event for event in shuffled if event not in starts[1:]]
        between = between[: len(told)]
    swept = played(shuffled, between)
    calm = played(told, ["nothing"] * len(told))
    here, there = state_of(swept), state_of(calm)
    for state in (here, there):
        for item in state.values():
            item.pop(keys.EXPIRES)  # counts from when events came
    assert here == there
    run = swept.item(RUN, keys.RUN)
    assert run is not None
    ended = any(isinstance(event, wire.RunEnded) for event in told)
    assert not (ended and items.STALE in run)
    if items.STALE in run:
        summary = swept.item(RUN, keys.SUMMARY)
        steps = {event.step_id for event in told if isinstance(event, wire.Step)}
        assert summary is not None
        assert summary["agents_total"] == len(steps)
