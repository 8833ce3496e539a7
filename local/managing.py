"""What the commands about tenants and keys share: how they are managed, and how they are shown."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.api.tenants import ManageTenants
from functions.core import times
from functions.core.errors import Rejected
from local.commands import LocalStageError
from local.connect import Connect, StageOptions
from local.stage import Stage


@contextmanager
def managing(at: StageOptions, connect: Connect) -> Iterator[ManageTenants]:
    with at.connected(connect) as stage, managing_on(stage) as manage:
        yield manage


@contextmanager
def managing_on(stage: Stage) -> Iterator[ManageTenants]:
    table = DynamoDBTable(stage.dynamodb, stage.table_name)
    try:
        yield ManageTenants(DynamoDBTenants(table), time.time_ns)
    except Rejected as rejected:
        advice = "`runtally tenants list` and `runtally keys list TENANT` show what there is."
        raise LocalStageError(f"Refused: {rejected.detail}.", advice) from None


def moment(nanoseconds: int | None) -> str:
    """UTC to the second, which is what a person compares."""
    return "" if nanoseconds is None else times.text_of(nanoseconds)[:19].replace("T", " ")


def show(table: Table, when_empty: str) -> None:
    Console().print(table if table.row_count else when_empty)


def tell(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True)


def write_json(shown: object) -> None:
    sys.stdout.write(json.dumps(shown) + "\n")
