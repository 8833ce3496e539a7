"""The figures of `cost` for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEAD: Final = f"{'':58}{'a message':>10}{'WRU':>9}{'counted':>10}{'with time':>11}"


def table(found: dict[str, Any]) -> str:
    return "\n".join(_lines(found))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield "Dollars per million steps; steps a message, write units a step; Lambda's time is a model"
    yield _HEAD
    yield from _rows(found["runs"])
    yield "By calls at once, SDK defaults:"
    yield from _rows(found["by_fan_out"])
    yield "If the SDK cut a message after so many seconds:"
    for seconds, each in found["by_after_s"].items():
        yield from _rows({f"{seconds:>2} s, {name}": figures for name, figures in each.items()})
    yield "What a million steps use:"
    for name, each in found["runs"].items():
        parts = each["usd"] | {f"lambda {part}": n for part, n in each["lambda_time_usd"].items()}
        yield f"  {name}: " + ", ".join(f"{part} ${usd:.3f}" for part, usd in parts.items())
    yield "Others, of the same steps, counted:"
    yield from _rows(found["others"])
    yield "Bars:"
    for bar in found["bars"]:
        yield f"  {'holds ' if bar['holds'] else 'MISSED'}  {_told(bar)}"
    yield from _months(found["monthly"])


def _rows(rows: Mapping[Any, dict[str, Any]]) -> Iterator[str]:
    for name, each in rows.items():
        if "not_here" in each:
            yield f"  {name:56}  {each['not_here']}"
            continue
        message = f"{each['steps_a_message']:.1f}" if "steps_a_message" in each else ""
        figures = f"{message:>10}{each['write_units_per_step']:9.3f}{each['counted_usd']:10.2f}"
        time = f"{each['usd_per_million']:11.2f}" if each["lambda_time_usd"] else ""
        yield f"  {name:56}{figures}{time}"
        if "stopped" in each:
            yield f"    after {each['steps']} steps: {each['stopped']}"


def _told(bar: dict[str, Any]) -> str:
    told = f"{bar['figure']} (at most {bar['bar']}): {bar['name']}"
    if "with_lambda_time" not in bar:
        return told
    return f"{told}; {bar['with_lambda_time']} with Lambda's time"


def _months(months: dict[Any, dict[str, Any]]) -> Iterator[str]:
    yield "By the month, in dollars, at so many steps a second:"
    yield f"  {'':48}" + "".join(f"{int(rate):>14,}" for rate in months)
    first = next(iter(months.values()))
    for name in first["items"]:
        yield _month(name, [each["items"][name] for each in months.values()])
    for days, parts in first["storage"].items():
        for part in parts:
            row = [each["storage"][days][part] for each in months.values()]
            yield _month(f"storage, {part}, kept for {days}", row)
    for days in first["total"]:
        yield _month(f"total, kept for {days}", [each["total"][days] for each in months.values()])


def _month(name: str, row: list[float]) -> str:
    return f"  {name:48}" + "".join(f"{usd:14,.2f}" for usd in row)
