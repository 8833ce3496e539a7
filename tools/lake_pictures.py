# /// script
# requires-python = ">=3.13"
# dependencies = ["matplotlib>=3.11"]
# ///
"""Draw the pictures of docs/lake.md from answers to the ready questions.

runtally query --named NAME --json > ANSWERS/NAME.json      # for each of them
uv run --script tools/lake_pictures.py ANSWERS docs/pictures
"""

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

OURS: Final = "#0b6e4f"
SECOND: Final = "#d1495b"
MOST: Final = 12

type Rows = list[dict[str, Any]]

mpl.rcParams |= {
    "svg.hashsalt": "runtally",  # the same answers give the same file
    "svg.fonttype": "none",  # text stays text, in whatever script a phase has its name
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}
warnings.filterwarnings("ignore", message="Glyph .* missing")


def cost(axes: Axes, rows: Rows) -> None:
    """A bar a week, in parts by model."""
    weeks = sorted({row["week"] for row in rows})
    models = dict.fromkeys(row["model"] for row in rows if row["cost_usd"])
    bottom = [0.0] * len(weeks)
    colors = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
    for model, color in zip(models, colors, strict=False):
        of = {row["week"]: float(row["cost_usd"]) for row in rows if row["model"] == model}
        usd = [of.get(week, 0.0) for week in weeks]
        axes.barh(weeks, usd, left=bottom, label=model, color=color, height=0.5)
        bottom = [a + b for a, b in zip(bottom, usd, strict=True)]
    axes.set_xlabel("dollars")
    axes.set_ylabel("week from")
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.35))


def p95(axes: Axes, rows: Rows) -> None:
    shown = rows[:MOST]
    names = [f"{row['pipeline']}: {row['phase']}" for row in shown]
    axes.barh(names, [row["p95_ms"] for row in shown], color=OURS, label="p95")
    axes.plot([row["p50_ms"] for row in shown], names, "|", color=SECOND, ms=12, mew=2, label="p50")
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.legend(frameon=False, loc="lower right")


def failures(axes: Axes, rows: Rows) -> None:
    shown = rows[:MOST]
    names = [" ".join(row["error"].split())[:60] for row in shown]
    bars = axes.barh(names, [row["calls"] for row in shown], color=SECOND)
    axes.bar_label(bars, [f" runs: {row['runs']}, phase: {row['phases']}" for row in shown])
    axes.invert_yaxis()
    axes.margins(x=0.3)
    axes.set_xlabel("failed calls")


def dearest(axes: Axes, rows: Rows) -> None:
    shown = rows[:MOST]
    names = [f"{row['phase']} …{row['step_id'][-8:]}" for row in shown]
    bars = axes.barh(names, [float(row["cost_usd"]) for row in shown], color=OURS)
    axes.bar_label(bars, [f" {row['input_tokens']:,} tokens in" for row in shown])
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set_xlabel("dollars a call")


PICTURES: Final[dict[str, tuple[str, Callable[[Axes, Rows], None], tuple[float, float]]]] = {
    "lake-cost": ("cost-by-model-and-week", cost, (8, 2.2)),
    "lake-p95": ("p95-by-phase", p95, (8, 4)),
    "lake-failures": ("failure-clusters", failures, (8.5, 2.4)),
    "lake-dearest": ("dearest-prompts", dearest, (8, 4)),
}
"""Each with its question, what draws it, and its size in inches."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("answers", type=Path, help="where the answers are, NAME.json each")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    given = parser.parse_args()
    for name, (question, draw, size) in PICTURES.items():
        figure, axes = plt.subplots(figsize=size)
        draw(axes, json.loads((given.answers / f"{question}.json").read_text()))
        figure.savefig(given.folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
