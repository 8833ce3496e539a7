"""Ended runs that a stage's lake has not, and the stage's own function, which writes them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec
from botocore import exceptions
from botocore.exceptions import ClientError
from msgspec import Struct

from functions.core import keys, lake, lake_ports
from functions.core.api_ports import IndexedRun
from functions.core.keys import RunRef
from local.ended_runs import Failed
from local.listing import listed
from local.stage import Stage

_OF_EVERY_RUN: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
    }
)
"""What Lambda answers for each run alike."""


class Rows(Struct, frozen=True):
    """The answer of the function: 0 for a run of which the lake has none."""

    rows: int


def in_lake(stage: Stage, runs: Iterable[IndexedRun]) -> frozenset[RunRef]:
    """Which of a tenant's runs, in order of their start, have a file in the table `runs`, the last
    that is written of a run: the item LAKE is there before any, also of one that was given up."""
    found: set[RunRef] = set()
    for day, of_day in groupby(runs, key=lambda run: lake.day_at(run.started_at)):
        refs = [run.ref for run in of_day]
        below = lake.place_of(lake.RUNS, refs[0]._replace(run_id=""), day)
        files = {
            each["Key"] for each in listed(stage.s3, stage.lake_bucket, keys.LAKE_OBJECTS + below)
        }
        found |= {ref for ref in refs if lake_ports.object_of_run(lake.RUNS, ref, day) in files}
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class WriteByFunction:
    """Asks the stage's function to write a run; may be called from several threads."""

    functions: Any
    name: str

    @classmethod
    def of(cls, stage: Stage) -> "WriteByFunction":
        return cls(stage.client("lambda"), stage.lake_function)

    def __call__(self, ref: RunRef) -> int | Failed:
        """How many rows the lake has of the run by now, or why it could not be written.

        Raises ClientError and BotoCoreError for what no other run would be spared.
        """
        try:
            answer = self.functions.invoke(
                FunctionName=self.name, Payload=msgspec.json.encode(ref._asdict())
            )
            said = answer["Payload"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in _OF_EVERY_RUN:
                raise
            return Failed(ref.run_id, f"{error}")
        except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
            return Failed(ref.run_id, f"{error}")
        if "FunctionError" in answer:
            return Failed(ref.run_id, said.decode(errors="replace"))
        return msgspec.json.decode(said, type=Rows).rows
