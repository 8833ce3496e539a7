"""A table that holds a recorded run, in a process of its own: so the code under measurement has its
real boto3 client, and neither the fake's time nor its memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from functions.core.keys import RunRef

RUN: Final = RunRef("acme", "run-1")


class Served(NamedTuple):
    """`api_key` is one of the run's tenant; `read_units` is what reading all of its steps takes,
    strongly consistent."""

    endpoint: str
    api_key: str
    read_units: int

    @property
    def environment(self) -> dict[str, str]:
        """For a process whose boto3 clients are to talk to this table."""
        return without_aws() | {"AWS_ENDPOINT_URL_DYNAMODB": self.endpoint}


def without_aws() -> dict[str, str]:
    """This process's environment, in which a boto3 client finds no account."""
    return os.environ | {
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "POWERTOOLS_METRICS_DISABLED": "true",
        "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    }


@contextmanager
def served_run(calls: int, buckets: int = 1) -> Iterator[Served]:
    """RUN, ended, with so many calls, for as long as the block lasts."""
    command = [sys.executable, "-m", "benchmarks.recorded", str(calls), str(buckets)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=without_aws()) as table:  # noqa: S603
        try:
            told = table.stdout.readline() if table.stdout else ""
            yield Served(**json.loads(told))
        finally:
            table.terminate()
