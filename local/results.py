"""What the stage made of one run, read once: for waiting on it, and for comparing it."""

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from functions.api import shapes, showing
from functions.core.keys import RunRef
from local.stage import Stage


def read_run(stage: Stage, ref: RunRef) -> shapes.ListedRun | None:
    """The run as it is now, or None before its first message was stored."""
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    record = DynamoDBRunReader(table).record_of(ref)
    if record.run is None:
        return None
    return shapes.ListedRun(
        **showing.run_fields(record.run),
        totals=showing.sums_of(record),
        preview=showing.preview_of(record),
        phases=showing.phases_of(record),
    )


def covers(run: shapes.ListedRun, steps: int) -> bool:
    """Whether the run has ended and its summary counts that many steps, or more."""
    totals = run.totals
    return run.status != "running" and totals.source == "summary" and totals.agents_total >= steps
