"""What is told of a scenario of `python -m benchmarks hot`."""

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Any

from benchmarks.hot.load import COST, INPUT_TOKENS, Load
from benchmarks.hot.partitions import Partitions
from benchmarks.hot.stage import HotStage
from functions.adapters.attributes import from_attributes
from functions.core import counts, keys
from runtally import wire


def of_partitions(partitions: Partitions, seconds: float) -> dict[str, Any]:
    """Of whichever key took most in a second, after the first: that one has what was left over."""
    busiest = {
        key: max((units for second, units in taken.items() if second), default=0)
        for key, taken in partitions.written.items()
    }
    key = max(busiest, key=busiest.__getitem__)
    sending = [partitions.written[key][second] for second in range(1, int(seconds))]
    indexes = [most for name, most in busiest.items() if name.startswith(keys.BY_TENANT)]
    return {
        "hottest_partition_write_units_a_second": _of_hottest_partition(partitions),
        "hottest_key": key,
        "hottest_write_units_a_second": busiest[key],
        "hottest_write_units_a_second_on_average": round(sum(sending) / len(sending)),
        "hottest_key_write_units": dict(partitions.kinds[key].most_common()),
        "hottest_index_key_write_units_a_second": max(indexes, default=0),
        "write_units": sum(taken.total() for taken in partitions.written.values()),
        "throttled_writes": partitions.throttled["write"],
        "throttled_reads": partitions.throttled["read"],
    }


def _of_hottest_partition(partitions: Partitions) -> int:
    """The most in a second, of all the keys that share one."""
    taken: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for key, by_second in partitions.written.items():
        taken[partitions.partition_of(key)] += by_second
    return max(units for each in taken.values() for second, units in each.items() if second)


def of_delivery(stage: HotStage, oldest_s: float, seconds: float) -> dict[str, Any]:
    done = stage.events.done
    return {
        "messages": done.messages,
        "invocations": done.invocations,
        "most_at_once": done.most_at_once,
        "longest_invocation_s": round(done.longest_s, 1),
        "timeouts": done.timeouts,
        "redeliveries": done.redeliveries,
        "most_receives": done.most_receives,
        "dead_letters": len(stage.events.dead),
        "refused": len(stage.refused),
        "oldest_message_at_end_s": round(oldest_s, 1),
        "drained_after_s": round(max(0.0, stage.events.done.finished_at - seconds), 1),
        "counted_after_s": round(max(0.0, stage.time.now - seconds), 1),
        "recounts": stage.recounts.done.messages,
        "recount_dead_letters": len(stage.recounts.dead),
        "stream_records_given_up": stage.shards.given_up,
    }


def of_steps(stage: HotStage, load: Load) -> dict[str, Any]:
    """Lost is what is neither in the table nor in a dead letter."""
    ids = {
        (keys.parse_run_partition(partition)[0].run_id, sort.removeprefix(keys.STEP_PREFIX))
        for partition, sort in stage.table.items
        if sort.startswith(keys.STEP_PREFIX)
    }
    stored = Counter(run_id for run_id, _ in ids)
    dead = {step for message in stage.events.dead for step in _steps_in(message.body)}
    steps = load.steps_of_run * load.runs
    exact = True
    for ref in load.refs:
        item = stage.table.items.get(keys.item_of_run(ref, keys.TOTALS), {})
        totals = counts.parse_totals(from_attributes(item))
        count = stored[ref.run_id]
        exact &= totals.agents_total == count and totals.cost_usd_total == count * COST
        exact &= totals.input_tokens == count * INPUT_TOKENS
    return {
        "stored": len(ids),
        "only_in_dead_letters": len(dead - ids),
        "lost": steps - len(ids | dead),
        "totals_exact": exact,
    }


def _steps_in(body: str) -> list[tuple[str, str]]:
    """Each with the id of its run."""
    message = wire.open_message(body)
    events = [wire.decode_event(line, "") for line in message.lines]
    run_id = message.head.run_id or ""
    return [(run_id, event.step_id) for event in events if isinstance(event, wire.Step)]
