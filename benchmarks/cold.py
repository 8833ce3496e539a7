"""What a function does before its first event: `python -m benchmarks cold`.

The import of its handler and the making of what it keeps, clients included, from the very bundle
that is deployed and with the bytecode that is in it; against the least that a function of the kind
needs, which is boto3 and clients of DynamoDB and S3, and against one that imports what Powertools
has for functions like these. Instructions come from callgrind; CPU and wall time from fresh
processes that take turns, from the first statement on. boto3 is this environment's, with bytecode,
as Lambda's runtime has its own.

The sizes are of the bundles for AWS, boto3 not among them.
"""

import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import instructions
from benchmarks.cpu.ways import ENVIRONMENT as INGESTS
from cdk import bundle
from functions.adapters import settings

BUNDLE_BAR: Final = 5_000_000
_ROUNDS: Final = 10
_BASE: Final = "boto3 and two clients"
_TWO_CLIENTS: Final = "import boto3; boto3.client('dynamodb'); boto3.client('s3')"
_POWERTOOLS: Final = f"""\
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig
from aws_lambda_powertools.utilities.parameters import SSMProvider
from aws_lambda_powertools.utilities.parser import BaseModel, event_parser
from aws_lambda_powertools.utilities.parser.models import SqsModel
{_TWO_CLIENTS}
Logger(); Metrics(); BatchProcessor(event_type=EventType.SQS); SSMProvider()
DynamoDBPersistenceLayer(table_name='t')"""


class Start(NamedTuple):
    """`bar`: of the instructions that the base takes, at most."""

    name: str
    program: str
    bundled: bundle.Bundle | None = None
    bar: float | None = None


STARTS: Final = (
    Start(_BASE, _TWO_CLIENTS),
    Start(
        "ingest", "from functions.ingest.handler import _ingest; _ingest()", "functions", bar=1.15
    ),
    Start(
        "summarize",
        "from functions.summarize.handler import _summarize; _summarize()",
        "functions",
        bar=1.15,
    ),
    Start(
        "recount", "from functions.summarize.recount_handler import _parts; _parts()", "functions"
    ),
    Start("sweep", "from functions.sweep.handler import _parts; _parts()", "functions"),
    Start("erase", "from functions.erase.handler import _parts; _parts()", "functions"),
    Start(
        "dead jobs",
        "from functions.api.dead_jobs_handler import _dead_jobs; _dead_jobs()",
        "functions",
    ),
    Start("api", "from functions.api.handler import _http; _http()", "api", bar=1.5),
    Start("full Powertools", _POWERTOOLS),
)
LEFT_OUT: Final = "Tracer: its SDK, aws-xray-sdk, is none of this project's packages"

_ENVIRONMENT: Final = {
    **INGESTS,
    "POWERTOOLS_SERVICE_NAME": "s",
    "POWERTOOLS_METRICS_NAMESPACE": "n",
    settings.EVENT_QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/1/q",
    settings.RECOUNT_QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/1/r",
    settings.FAILED_BATCHES_BUCKET: "f",
    settings.SERVICE_ENTRIES: "{}",
    settings.SWEEP_MINUTES: "5",
    settings.QUIET_S: "600",
}
_TIMED: Final = """\
import time
began = time.process_time_ns(), time.perf_counter_ns()
{program}
print(time.process_time_ns() - began[0], time.perf_counter_ns() - began[1])"""


def measure() -> dict[str, Any]:
    for start in STARTS:
        _run(start)  # so that all bytecode of this environment is there
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        nothing, *counts = pool.map(_instructions, (Start("", "pass"), *STARTS))
    times: dict[Start, list[tuple[float, float]]] = {start: [] for start in STARTS}
    for _ in range(_ROUNDS):
        for start, taken in times.items():
            taken.append(_run(start))
    figures = [
        {
            "name": start.name,
            "bar": start.bar,
            "instructions": count - nothing,
            "ratio": round((count - nothing) / (counts[0] - nothing), 3),
            "cpu_ms_best": round(min(cpu for cpu, _ in times[start])),
            "cpu_ms_median": round(statistics.median(cpu for cpu, _ in times[start])),
            "wall_ms_best": round(min(wall for _, wall in times[start])),
            "wall_ms_median": round(statistics.median(wall for _, wall in times[start])),
        }
        for start, count in zip(STARTS, counts, strict=True)
    ]
    sizes = {name: bundle.size_of(bundle.build("aws", name)) for name in bundle.BUNDLES}
    return {"starts": figures, "left_out": LEFT_OUT, "bundles": sizes, "bundle_bar": BUNDLE_BAR}


def _instructions(start: Start) -> int:
    return instructions.of_program(start.program, _ENVIRONMENT, _folder(start))


def _run(start: Start) -> tuple[float, float]:
    """Milliseconds of CPU, and by the clock, in a process of its own."""
    read_only = ["-B"] if start.bundled else []
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, *read_only, "-c", _TIMED.format(program=start.program)],
        env={**os.environ, **_ENVIRONMENT},
        cwd=_folder(start),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    cpu, wall = map(int, done.stdout.split())
    return cpu / 1e6, wall / 1e6


def _folder(start: Start) -> Path:
    """Where a function's code lies: the working directory, which comes first in its path."""
    return bundle.build("local", start.bundled) if start.bundled else Path(sys.prefix)


def table(found: dict[str, Any]) -> str:
    line = (
        "  {name:22} {instructions:13,} instructions = {ratio:.3f}  {cpu_ms_best:5} ms of CPU at"
        " best, {cpu_ms_median:5} in the middle  {wall_ms_best:5} ms at best, {wall_ms_median:5}"
        " in the middle{within}"
    )
    lines = [
        line.format(**each, within=f"  (bar: {each['bar']})" if each["bar"] else "")
        for each in found["starts"]
    ]
    lines.append(f"  left out: {found['left_out']}")
    lines += [f"  bundle {name}: {size / 1e6:.2f} MB" for name, size in found["bundles"].items()]
    lines.append(f"  the bar for functions: {found['bundle_bar'] / 1e6:.0f} MB")
    return "\n".join(lines)
