"""The example of coordination, run before a stage: what its workers spent, and what was recorded.

Both must come to the same: the budget is counted on a Valkey server, the costs by the pipeline.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from rich.console import Console
from rich.text import Text

from functions.api import shapes
from functions.api.pages import Page
from local import waiting
from local.commands import LocalStageError
from local.paths import ROOT
from local.progress import doing
from local.reading import Reading
from local.tables import blank_if_none, plain_table
from local.valkey_server import URL_VARIABLE

PROGRAM: Final = Path("examples/coordination/shared_budget.py")
_WITHIN_S: Final = 90


class Worker(msgspec.Struct, frozen=True):
    """What one process says of itself; units are nano-dollars. `refused` are those that it asked
    for when they were too many, else 0."""

    worker: str
    calls: int
    spent: int
    refused: int


class Budget(msgspec.Struct, frozen=True):
    """What the server counted, and why all stopped."""

    run_id: str
    at_once: int
    limit: int
    spent: int
    stopped: str | None

    @property
    def spent_usd(self) -> Decimal:
        return Decimal(self.spent).scaleb(-9)


@dataclass(frozen=True, slots=True)
class SharedBudget:
    """The same work told three times."""

    workers: list[Worker]
    budget: Budget
    recorded: shapes.ListedRun
    most_at_once: int
    """Of the calls, by the times that were recorded."""

    def mismatches(self) -> list[str]:
        """What the budget, the workers and the record say differently, or what is over a limit."""
        budget, totals = self.budget, self.recorded.totals
        pairs = {
            "cost_usd_total": (Decimal(totals.cost_usd_total), budget.spent_usd),
            "agents_total": (totals.agents_total, sum(each.calls for each in self.workers)),
            "cost_unknown_total": (totals.cost_unknown_total, 0),
            "spent": (sum(each.spent for each in self.workers), budget.spent),
        }
        found = [
            f"{budget.run_id}: {name} is {one}, not {other}"
            for name, (one, other) in pairs.items()
            if one != other
        ]
        if budget.spent > budget.limit:
            found.append(f"{budget.run_id}: {budget.spent} were spent of {budget.limit}")
        if self.most_at_once > budget.at_once:
            found.append(f"{budget.run_id}: {self.most_at_once} calls at once of {budget.at_once}")
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            **msgspec.to_builtins(self.budget),
            "left": self.budget.limit - self.budget.spent,
            "most_at_once": self.most_at_once,
            "cost_usd_total": self.recorded.totals.cost_usd_total,
            "workers": msgspec.to_builtins(self.workers),
        }


def share_a_budget(
    reading: Reading, url: str, access: Mapping[str, str], spool: Path, within_s: float
) -> SharedBudget:
    """Run the example as its user would, and read what was recorded of it.

    `access` leads to the stage's AWS, `spool` is where messages may wait. Raises LocalStageError.
    """
    with doing("Share a budget among eight processes"):
        workers, budget = said(_output(_environment(reading, url, access, spool)))
    with doing("Wait for the summary"):
        calls = sum(each.calls for each in workers)
        wanted = [(reading.ref(budget.run_id), calls)]
        (recorded,) = waiting.until_summarised(reading.stage, wanted, within_s)
    page: Page = reading.ask("readRun", run_id=budget.run_id)
    recorded_calls = (cast("shapes.Call", row.value) for row in page.rows)
    return SharedBudget(workers, budget, recorded, most_at_once(recorded_calls))


def said(output: str) -> tuple[list[Worker], Budget]:
    """What the program printed: a line a worker, and one of the run."""
    *workers, run = output.splitlines()
    return (
        [msgspec.json.decode(line, type=Worker) for line in workers],
        msgspec.json.decode(run, type=Budget),
    )


def most_at_once(calls: Iterable[shapes.Call]) -> int:
    """How many were under way at the same time, at most. One may begin as another ends."""
    ends = sorted(end for call in calls for end in ((call.started_at, 1), (call.ended_at, -1)))
    return max(itertools.accumulate(step for _, step in ends), default=0)


def show_shared_budget(out: Console, shared: SharedBudget) -> None:
    """What each worker did, and below it what all of them came to."""
    budget = shared.budget
    out.print(f"[dim]$[/] python {PROGRAM}", highlight=False)
    table = plain_table()
    table.add_column("worker")
    for name in ("calls", "nano-dollars", "refused"):
        table.add_column(name, justify="right")
    for each in shared.workers:
        table.add_row(
            each.worker, f"{each.calls:,}", f"{each.spent:,}", blank_if_none(each.refused)
        )
    out.print(table)
    left = budget.limit - budget.spent
    recorded, counted = shared.recorded.totals.cost_usd_total, budget.spent_usd.normalize()
    lines = (
        f"{budget.limit:,} to spend, {budget.spent:,} spent, {left:,} left.",
        f"At most {shared.most_at_once} calls at once, of {budget.at_once}.",
        f"Stopped by {budget.stopped}.",
        f"Recorded: ${recorded}; counted: ${counted:f}.",
    )
    for line in lines:
        out.print(Text(line), soft_wrap=True)
    out.print()


def _environment(
    reading: Reading, url: str, access: Mapping[str, str], spool: Path
) -> dict[str, str]:
    """Of one's own, all but what would lead the program elsewhere or change what it records."""
    kept = {name: it for name, it in os.environ.items() if not name.startswith("RUNTALLY_")}
    return {
        **kept,
        **access,
        "RUNTALLY_TENANT_ID": reading.tenant_id,
        "RUNTALLY_QUEUE_URL": reading.stage.event_queue_url,
        "RUNTALLY_BUCKET": reading.stage.bucket_name,
        "RUNTALLY_SPOOL_DIR": str(spool),
        URL_VARIABLE: url,
    }


def _output(environment: Mapping[str, str]) -> str:
    """What it complains of goes to the terminal."""
    command = [sys.executable, str(ROOT / PROGRAM)]
    advice = f"What is before this says why; {URL_VARIABLE} may name a server that is not there."
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=_WITHIN_S,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise LocalStageError(f"{PROGRAM} failed: {error}.", advice) from None
    return done.stdout
