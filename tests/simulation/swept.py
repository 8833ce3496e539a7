"""What the sweep may do to a run at any moment, and what must have become of it at rest."""

from typing import Any

from functions.core import counts, items, keys
from runtally import wire
from runtally.wire import RunEnded
from tests import build
from tests.memory_stage import NOW_NS
from tests.simulation.scenario import Sent
from tests.simulation.world import SWEPT_AFTER_S, World


def marked_only(record: dict[str, Any]) -> None:
    """No run that has ended is stale, at any moment; and who marks one changes nothing else."""
    old, new = record.get("OldImage", {}), record.get("NewImage", {})
    marked = any(new.get(name) != old.get(name) for name in items.STALE_MARK)
    if "end" in new or items.DELETED in new:
        assert not any(name in new for name in items.STALE_MARK), "a run with an end is stale"
        assert new.get("status") != {"S": "stale"}, "a run with an end is shown as stale"
    elif marked:
        changed = {name for name in old | new if old.get(name) != new.get(name)}
        assert changed <= {*items.STALE_MARK, "status"}, f"the sweep changed {changed}"


def at_rest(world: World, sent: Sent) -> None:
    """Stale is who is open and past the deadline, with a summary of all steps; all was told."""
    stage = world.stage
    run = stage.item(sent.ref, keys.RUN)
    assert run is not None
    events = stage.events
    if sent.ended:
        told = {d["dedupe_id"] for d in events.details("run.ended") if _is_about(d, sent)}
        ends = {wire.digest(wire.encode_event(e)) for e in sent.events if isinstance(e, RunEnded)}
        of_run = f"{'/'.join(sent.ref)}/ended-"
        assert told <= {f"{of_run}{digest}" for digest in ends}, "an end that nobody sent"
        stands = f"{of_run}{run['end']['digest']}"
        assert world.stream.gone or stands in told, "nobody was told of the end"
        return
    steps = [int(item["ended_at"]) for item in stage.items_of(sent.ref, keys.STEP_PREFIX)]
    logs = [int(item["at"]) for item in stage.items_of(sent.ref, keys.LOG_PREFIX)]
    patience = int(run["start"].get("stale_after_s", 3_600)) * build.SECOND
    since = max(int(run["start"]["at"]), *steps, *logs) + patience
    if since > NOW_NS + SWEPT_AFTER_S * build.SECOND:
        assert items.STALE not in run, "stale before its time"
        assert run["status"] == "running", "not running again"
        return
    assert (run["status"], run.get(items.STALE)) == ("stale", since), "not stale"
    assert run[keys.OPEN_RUNS_PARTITION] == keys.open_runs(sent.ref).partition
    summary = stage.item(sent.ref, keys.SUMMARY)
    assert summary is not None, "a stale run without a summary"
    assert summary["agents_total"] == len(sent.steps), "the summary of a stale run"
    totals = stage.item(sent.ref, keys.TOTALS) or {}
    assert counts.ENDED not in totals, "a stale run taken for an ended one"
    assert any(_is_about(d, sent) for d in events.details("run.stale")), "nobody was told of it"


def _is_about(detail: dict[str, Any], sent: Sent) -> bool:
    return (detail["tenant_id"], detail["run_id"]) == sent.ref
