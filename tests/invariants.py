"""DESIGN's invariants, as checks on a MemoryStage: what must hold always, and what at rest."""

from fractions import Fraction
from typing import Any

from functions.core import counts, keys
from functions.core.items import Item
from functions.core.keys import RunRef
from functions.core.model import Totals
from runtally import wire
from tests.fakes.dynamodb import item_size
from tests.memory_lake import day_in
from tests.memory_stage import MemoryStage

_BOOKKEEPING = ("pointer", "stored_at", "at_total", "preview_full")
_OF_NO_RUN = (keys.TENANT, keys.API_KEY, keys.INVOCATION, keys.SWEEP)


def pointers_hold(stage: MemoryStage, run: RunRef) -> None:
    """I6: what a pointer names exists, and its line has the item's digest. At every moment."""
    for item in stage.items_of(run):
        if "pointer" in item:
            line = stage.line_behind(run, item["pointer"])
            assert wire.digest(line) == item["digest"], item["SK"]


def caps_hold(stage: MemoryStage) -> None:
    """Every item of a run under 100 KB, a step under 4 KB, a log under 17 KB, and none without a
    time to expire. At every moment."""
    for (_, sort), item in stage.dynamodb.items.items():
        if sort in _OF_NO_RUN:
            continue
        assert int(item[keys.EXPIRES]["N"]) > stage.now_ns // 10**9, sort
        limit = 100_000
        if sort.startswith(keys.STEP_PREFIX):
            limit = 4_096
        elif sort.startswith(keys.LOG_PREFIX):
            limit = 17_000
        assert item_size(item) < limit, (sort, item_size(item))


def counted_exactly(stage: MemoryStage, run: RunRef, steps: list[wire.Step]) -> None:
    """I3, I4, I5 at rest, against sums over what was sent, made here and not by the code's fold."""
    totals = stage.item(run, keys.TOTALS) or {}
    expected = sums_of(steps)
    assert _sums_in(totals) == expected
    preview = (stage.item(run, keys.PREVIEW) or {}).get("agents", [])
    assert len(preview) == min(100, len(steps))
    assert len({entry[0] for entry in preview}) == len(preview)
    assert {entry[0] for entry in preview} <= {step.step_id for step in steps}
    record = stage.item(run, keys.RUN)
    if record and "end" in record:
        summary = stage.item(run, keys.SUMMARY)
        assert summary is not None
        assert _sums_in(summary) == expected
        assert sum(phase["calls"] for phase in summary["phases_summary"]) == len(steps)


def lake_equals_summary(stage: MemoryStage, run: RunRef) -> None:
    """At rest: an ended run is in the lake once, and exactly as its SUMMARY and items say."""
    assert stage.lake
    files = stage.lake.files_of(run)
    record, summary = stage.item(run, keys.RUN), stage.item(run, keys.SUMMARY)
    if record is None or "deleted_at" in record or "end" not in record:
        assert not files, f"lake: files of a run that has none: {files}"
        return
    assert summary is not None
    rows = stage.lake.rows("runs", run)
    assert len(rows) == 1, f"lake: a row of the run in {files}"
    (row,) = rows
    assert {day_in(key) for key in files} == {row["day"]}, f"lake: its day is not that of {files}"
    sums = Totals().as_attributes()
    found = {name: row[name] for name in sums}
    assert found == {name: summary.get(name, 0) for name in sums}, f"lake: {found} is no SUMMARY"
    said = (row["status"], row["pipeline"], row["started_ns"], row["ended_ns"])
    start, end = record["start"], record["end"]
    is_so = (record["status"], record.get("pipeline", ""), start["at"], end["at"])
    assert said == is_so, f"lake: {said} for {is_so}"
    calls = stage.lake.rows("calls", run)
    stored = [item["SK"].removeprefix("AGENT#") for item in stage.items_of(run, "AGENT#")]
    assert sorted(call["step_id"] for call in calls) == sorted(stored), "lake: other calls"
    known = [call["cost_usd"] for call in calls if call["cost_usd"] is not None]
    assert sum(map(Fraction, known), Fraction(0)) == row["cost_usd_total"], "lake: costs of calls"
    phases = {phase["phase"]: phase for phase in stage.lake.rows("phases", run)}
    assert len(phases) == len(summary["phases_summary"]), "lake: other phases"
    for entry in summary["phases_summary"]:
        for name in ("calls", "failed", "cost_usd", "input_tokens", "output_tokens"):
            assert phases[entry["phase"]][name] == entry[name], f"lake: {name} of a phase"


def sums_of(steps: list[wire.Step]) -> dict[str, Any]:
    costs = [Fraction(step.cost_usd) for step in steps if step.cost_usd is not None]
    return {
        "agents_total": len(steps),
        "failed_total": len([s for s in steps if s.status == "failed"]),
        "cancelled_total": len([s for s in steps if s.status == "cancelled"]),
        "cost_usd_total": sum(costs, Fraction(0)),
        "cost_unknown_total": len(steps) - len(costs),
        "input_tokens": sum(s.input_tokens or 0 for s in steps),
        "output_tokens": sum(s.output_tokens or 0 for s in steps),
        "cached_tokens": sum(s.cached_tokens or 0 for s in steps),
    }


def final_state(stage: MemoryStage, run: RunRef) -> dict[tuple[str, str], Any]:
    """All items of a run without what may differ between equal histories: where a line lies,
    how far marks are, and the order of the preview."""
    state: dict[tuple[str, str], Any] = {}
    for item in stage.items_of(run):
        kept = {
            name: value
            for name, value in item.items()
            if name not in _BOOKKEEPING and not name.startswith(counts.MARK_PREFIX)
        }
        if item["SK"] == keys.PREVIEW:
            kept["agents"] = sorted(kept["agents"])
        state[item["PK"], item["SK"]] = kept
    return state


def _sums_in(item: Item) -> dict[str, Any]:
    return {name: item.get(name, 0) for name in sums_of([])}
