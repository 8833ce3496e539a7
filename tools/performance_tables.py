"""Write the tables of docs/performance.md, and the one of docs/coordination.md, from what
`python -m benchmarks --into FILE` measured.

    python -m tools.performance_tables build/benchmarks.json

A table stands between `<!-- NAME -->` and `<!-- end -->`, each line of text around it is by hand.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from local.paths import ROOT

PAGES: Final = (ROOT / "docs/performance.md", ROOT / "docs/coordination.md")
_SPOT: Final = re.compile(r"<!-- (?P<name>[a-z ]+) -->\n.*?<!-- end -->", re.DOTALL)
_FULL_NAME: Final = "1,500 calls, 8 at once,"

type Found = dict[str, Any]
type Row = Sequence[object]


def filled(page: str, found: Found) -> str:
    """The page with its tables of these figures. Raises KeyError for a spot without a table."""

    def at(spot: re.Match[str]) -> str:
        name = spot["name"]
        return f"<!-- {name} -->\n{TABLES[name](found)}\n<!-- end -->"

    return _SPOT.sub(at, page)


def _table(head: Row, rows: Iterable[Row]) -> str:
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, marks, *rows))


def _bars(found: Found) -> str:
    return _table(
        ("", "bar", "measured", ""),
        [
            (name, bar, figure, "✓" if holds else "**missed**")
            for name, bar, figure, holds in _all_bars(found)
        ],
    )


def _all_bars(found: Found) -> Iterator[tuple[str, object, object, bool]]:
    for each in found["cost"]["bars"]:
        name = each["name"].replace("…", _FULL_NAME)
        yield name, each["bar"], each["figure"], each["holds"]
    for each in found["hot"]["bars"]:
        yield each["bar"], "", f"{each['figure']:,}", each["holds"]
    cpu, sdk = found["cpu"], found["sdk"]
    ours = next(way for way in cpu["ways"] if (way["name"], way["packed_by"]) == ("ours", 10))
    ratio = ours["instructions_ratio"]
    name = "ingest's instructions a step, of naive boto3, packed by 10"
    yield name, cpu["bar"], ratio, ratio <= cpu["bar"]
    step = next(step for step in sdk["steps"] if step["payload_bytes"] == 4_096)
    figure = f"{step['us_best']} µs, {step['us_median']} in the middle"
    name = "CPU of the agent's thread, a step with 4 KB"
    yield name, f"{sdk['bar_us']} µs", figure, step["us_best"] <= sdk["bar_us"]
    for start in found["cold"]["starts"]:
        if start["bar"]:
            name = f"cold start of {start['name']}, × boto3 and two clients"
            yield name, start["bar"], start["ratio"], start["ratio"] <= start["bar"]
    size = found["cold"]["bundles"]["functions"] / 1e6
    yield "bundle of ingest without boto3", "5 MB", f"{size:.2f} MB", size <= 5
    large, run = found["recount"]["100,000"], found["recount"]["1,500"]
    seconds, memory = large["cpu_ms_best"] / 1e3, large["peak_mb"]
    figure = f"{seconds:.1f} s, {memory} MB"
    holds = seconds <= 3.5 and memory <= 150
    yield "recount of 100,000 steps", "3.5 s, 150 MB", figure, holds
    yield "recount of 1,500 steps", "50 ms", f"{run['cpu_ms_best']} ms", run["cpu_ms_best"] <= 50
    responses = found["read"]["1,500"]["responses"]
    yield "detail of 1,500 calls", "one response", responses, responses == 1


def _cost(found: Found) -> str:
    ours = {
        f"**runtally**, {name.replace('…', _FULL_NAME)}": each
        for name, each in found["cost"]["runs"].items()
    }
    others = {
        name.replace("… and", "the same, and"): each
        for name, each in found["cost"]["others"].items()
    }
    return _table(
        ("", "steps a message", "write units a step", "$ counted", "$ with Lambda's time"),
        [_cost_row(name, each) for name, each in {**ours, **others}.items()],
    )


def _cost_row(name: str, each: Found) -> Row:
    if "not_here" in each:
        return (name, "", "", "", each["not_here"])
    packed = f"{each['steps_a_message']:.1f}" if "steps_a_message" in each else ""
    with_time = f"{each['usd_per_million']:.2f}" if each["lambda_time_usd"] else ""
    return (
        name, packed, f"{each['write_units_per_step']:.2f}", f"{each['counted_usd']:.2f}", with_time
    )  # fmt: skip


def _waiting(found: Found) -> str:
    after = found["cost"]["by_after_s"]
    kinds = next(iter(after.values()))
    return _table(
        ("$ counted, `send_after_s`", *(f"{seconds} s" for seconds in after)),
        [
            (kind, *(f"{each[kind]['counted_usd']:.2f}" for each in after.values()))
            for kind in kinds
        ],
    )


def _fan_out(found: Found) -> str:
    by_fan_out = found["cost"]["by_fan_out"]
    dollars = (f"{each['counted_usd']:.2f}" for each in by_fan_out.values())
    return _table(("calls at once, at the defaults", *by_fan_out), [("$ counted", *dollars)])


def _month(found: Found) -> str:
    months: dict[str, Found] = found["cost"]["monthly"]
    first = next(iter(months.values()))
    rows: list[Row] = [
        (
            item.replace("_", " "),
            *(f"{each['items'].get(item, 0):,.2f}" for each in months.values()),
        )
        for item in first["items"]
    ]
    for days, parts in first["storage"].items():
        for part in parts:
            stored = (f"{each['storage'][days][part]:,.2f}" for each in months.values())
            rows.append((f"storage, {part}, kept for {days}", *stored))
    for days in first["total"]:
        totals = (f"**{each['total'][days]:,.2f}**" for each in months.values())
        rows.append((f"**total**, kept for {days}", *totals))
    rates = (f"{int(rate):,}" if int(rate) else "idle" for rate in months)
    return _table(("steps a second", *rates), rows)


def _hot(found: Found) -> str:
    return _table(
        (
            "", "hottest key, WU/s, busiest second", "on average", "throttled writes",
            "delivered again", "dead letters", "drained after", "counted after", "lost",
        ),
        [
            (
                each["name"],
                f"{each['hottest_write_units_a_second']:,}",
                f"{each['hottest_write_units_a_second_on_average']:,}",
                f"{each['throttled_writes']:,}",
                f"{each['redeliveries']:,}",
                each["dead_letters"],
                f"{each['drained_after_s']:,.0f} s",
                f"{each['counted_after_s']:,.0f} s",
                each["lost"],
            )
            for each in found["hot"]["scenarios"]
        ],
    )  # fmt: skip


def _cpu(found: Found) -> str:
    return _table(
        ("a step with 4 KB", "packed by", "messages a batch", "instructions", "of naive", "CPU"),
        [
            (
                way["name"],
                way["packed_by"],
                way["together"],
                f"{way['instructions']:,}",
                f"{way['instructions_ratio']:.1%}",
                f"{way['cpu_us_best']:,} µs",
            )
            for way in found["cpu"]["ways"]
        ],
    )


def _cold(found: Found) -> str:
    return _table(
        ("", "instructions", "× B", "bar", "CPU"),
        [
            (
                start["name"],
                f"{start['instructions'] / 1e9:.2f} G",
                f"{start['ratio']:.3f}",
                start["bar"] or "",
                f"{start['cpu_ms_best']} ms",
            )
            for start in found["cold"]["starts"]
        ],
    )


def _recount(found: Found) -> str:
    return _table(
        ("steps", "CPU, best", "CPU, middle", "memory, most", "before", "read units", "$"),
        [
            (
                steps,
                f"{each['cpu_ms_best']:,} ms",
                f"{each['cpu_ms_median']:,} ms",
                f"{each['peak_mb']} MB",
                f"{each['base_mb']} MB",
                f"{each['read_units']:,}",
                f"{each['usd']:.5f}",
            )
            for steps, each in found["recount"].items()
        ],
    )


def _read(found: Found) -> str:
    return _table(
        ("calls of a run", "responses", "largest", "as text", "CPU, best", "slowest response"),
        [
            (
                calls,
                each["responses"],
                f"{each['largest_mb']} MB",
                f"{each['plain_mb']} MB",
                f"{each['cpu_ms_best']:,} ms",
                f"{each['longest_ms']:,} ms",
            )
            for calls, each in found["read"].items()
        ],
    )


def _lake(found: Found) -> str:
    return _table(
        (
            "calls of a run", "CPU, best", "CPU, middle", "in Lambda", "memory, most", "before",
            "Parquet", "requests", "read units", "$ a million steps", "with Lambda's time",
        ),
        [
            (
                calls,
                f"{each['cpu_s_best']:.2f} s",
                f"{each['cpu_s_median']:.2f} s",
                f"{each['lambda_s']} s",
                f"{each['peak_mb']} MB",
                f"{each['base_mb']} MB",
                f"{each['file_mb']} MB",
                sum(each["requests"].values()),
                f"{each['counted']['read_units']:,}",
                f"{each['counted_usd']:.3f}",
                f"{each['usd_per_million']:.3f}",
            )
            for calls, each in found["lake"].items()
        ],
    )  # fmt: skip


def _sdk(found: Found) -> str:
    return _table(
        ("payload", "CPU, best", "CPU, middle", "of it, writing the payload out"),
        [
            (
                f"{step['payload_bytes']:,} bytes",
                f"{step['us_best']} µs",
                f"{step['us_median']} µs",
                f"{step['writing_us_best']} µs",
            )
            for step in found["sdk"]["steps"]
        ],
    )


def _trouble(found: Found) -> str:
    return _table(
        (
            "SQS", "spool", "for the agent", "memory", "told as waiting", "told as lost", "untold",
            "arrived in the end",
        ),
        [
            (
                each["trouble"],
                each["spool"],
                f"{each['agent_s']} s",
                f"+{each['grown_mb']} MB",
                f"{each['waiting']:,}",
                f"{each['lost']:,}",
                each["untold"],
                f"{each['arrived_later']:,}",
            )
            for each in found["sdk"]["trouble"]
        ],
    )  # fmt: skip


def _sustain(found: Found) -> str:
    each = found["sustain"]
    minutes = range(len(each["steps_per_second_by_minute"]))
    busiest: dict[str, Found] = {}
    for one in each["processes"]:  # the busiest first
        busiest.setdefault(re.sub(r" \d+$", "", one["name"]), one)
    lags = [
        (
            f"from the end of a step to {what}, p50 / p95",
            *(f"{spreads[n]['p50']:,} / {spreads[n]['p95']:,} ms" for n in minutes),
        )
        for what, spreads in (
            ("stored", each["lag_to_stored_ms"]),
            ("counted", each["lag_to_counted_ms"]),
        )
    ]
    memory = [
        (f"memory of {name}", *(f"{mb:.0f} MB" for mb in one["mb_by_minute"]))
        for name, one in busiest.items()
    ]
    return _table(
        ("minute", *(n + 1 for n in minutes)),
        [("steps a second", *each["steps_per_second_by_minute"]), *lags, *memory],
    )


def _coordination(found: Found) -> str:
    clients = found["coordination"]["clients"]
    counted = {each["name"]: each for each in found["coordination"]["counted"]}
    alone, together = clients.values()
    return _table(
        (
            "", "µs, p50 / p99", "bare call, p50 / p99", "times bare",
            f"{list(clients)[1]} processes, a second (times bare)", "bytes there / back",
            "µs of the server", "ECPUs", "$ a million",
        ),
        [
            (
                one["name"],
                f"{one['p50_us']} / {one['p99_us']:,}",
                f"{one['bare']['name']} {one['bare']['p50_us']} / {one['bare']['p99_us']}",
                f"{one['times_bare']:.1f}",
                f"{many['per_s']:,} ({many['times_bare']:.1f})",
                f"{counted[one['name']]['bytes_in']} / {counted[one['name']]['bytes_out']}",
                f"{counted[one['name']]['server_us']:.0f}",
                f"{counted[one['name']]['ecpus']:.0f}",
                f"{counted[one['name']]['usd_per_million']:.2f}",
            )
            for one, many in zip(alone, together, strict=True)
        ],
    )  # fmt: skip


TABLES: Final = {
    "coordination": _coordination,
    "bars": _bars,
    "cost": _cost,
    "waiting": _waiting,
    "fan out": _fan_out,
    "month": _month,
    "hot": _hot,
    "cpu": _cpu,
    "cold": _cold,
    "recount": _recount,
    "read": _read,
    "lake": _lake,
    "sdk": _sdk,
    "trouble": _trouble,
    "sustain": _sustain,
}


def main() -> None:
    (figures,) = sys.argv[1:]
    found = json.loads(Path(figures).read_text())
    for page in PAGES:
        page.write_text(filled(page.read_text(), found))


if __name__ == "__main__":
    main()
