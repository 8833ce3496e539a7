# /// script
# requires-python = ">=3.13"
# dependencies = ["matplotlib>=3.11"]
# ///
"""Draw what `python -m benchmarks --json` measured: `uv run --script tools/plots.py F FOLDER`.

A script of its own, with its own lock: what draws is as large as all that the project needs.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

OURS: Final = "#0b6e4f"
OTHERS: Final = "#9aa5b1"
SECOND: Final = "#d1495b"

mpl.rcParams |= {
    "svg.hashsalt": "runtally",  # the same figures give the same file
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def cost(axes: Axes, found: dict[str, Any]) -> None:
    """Dollars per million steps, ours above the others."""
    ours = {f"runtally: {name}": each for name, each in _named(found["cost"]["runs"]).items()}
    others = {n: o for n, o in found["cost"]["others"].items() if "not_here" not in o}
    rows = {**ours, **dict(sorted(others.items(), key=lambda one: one[1]["counted_usd"]))}
    dollars = [each["counted_usd"] for each in rows.values()]
    bars = axes.barh(list(rows), dollars, color=[OURS if name in ours else OTHERS for name in rows])
    axes.bar_label(bars, [f" ${usd:.2f}" for usd in dollars])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("dollars per million steps: requests and units, counted")


def month(axes: Axes, found: dict[str, Any]) -> None:
    """What a deployment costs by the month, in parts."""
    months = found["cost"]["monthly"]
    names = [f"{int(rate):,} steps/s" if int(rate) else "idle" for rate in months]
    shares: dict[str, list[float]] = {}
    for each in months.values():
        whole = sum(each["items"].values())
        for part, usd in each["items"].items():
            shares.setdefault(part, []).append(100 * usd / whole)
    left = [0.0] * len(names)
    colors = plt.get_cmap("tab20").colors  # type: ignore[attr-defined]
    for (part, percent), color in zip(shares.items(), colors, strict=False):
        axes.barh(names, percent, left=left, label=part.replace("_", " "), color=color)
        left = [a + b for a, b in zip(left, percent, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("percent of the monthly bill, without storage")
    axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.4, -0.25))


def hot(axes: Axes, found: dict[str, Any]) -> None:
    """Write units a second of the hottest key, by steps a second of one run."""
    for buckets, color in ((1, SECOND), (8, OURS)):
        name = f"{buckets} bucket" + "s" * (buckets > 1)
        of = [
            (each["steps"] / each["seconds"], each["hottest_write_units_a_second_on_average"])
            for each in found["hot"]["scenarios"]
            if each["name"].startswith("a run") and each["name"].endswith(name)
        ]
        rates, units = zip(*sorted(of), strict=True)
        axes.plot(rates, units, "o-", color=color, label=name)
    axes.axhline(1_000, color=OTHERS, linestyle="--", label="what a partition key takes")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("steps a second of one run")
    axes.set_ylabel("write units a second, hottest key")
    axes.legend(frameon=False)


def cold(axes: Axes, found: dict[str, Any]) -> None:
    """Instructions before the first event, against boto3 and two clients."""
    starts = found["cold"]["starts"]
    names = [each["name"] for each in starts]
    colors = [OTHERS if name.startswith(("boto3", "full")) else OURS for name in names]
    bars = axes.barh(names, [each["ratio"] for each in starts], color=colors)
    axes.bar_label(bars, [f" {each['ratio']:.2f}" for each in starts])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("instructions before the first event, boto3 and two clients = 1")


def _named(runs: dict[str, Any]) -> dict[str, Any]:
    """With the whole name instead of an ellipsis."""
    first = next(iter(runs)).rpartition(", ")[0]
    return {name.replace("…", f"{first},"): each for name, each in runs.items()}


PLOTS: Final[dict[str, tuple[Callable[[Axes, dict[str, Any]], None], tuple[float, float]]]] = {
    "cost": (cost, (9.5, 5)),
    "cost-month": (month, (9.5, 4)),
    "hot": (hot, (7, 4)),
    "cold": (cold, (7.5, 3.2)),
}
"""Each with what draws it, and its size in inches. A file is `performance-NAME.svg`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", type=Path, help="what was measured, as JSON")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    given = parser.parse_args()
    found = json.loads(given.figures.read_text())
    for name, (draw, size) in PLOTS.items():
        figure, axes = plt.subplots(figsize=size)
        draw(axes, found)
        figure.savefig(given.folder / f"performance-{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
