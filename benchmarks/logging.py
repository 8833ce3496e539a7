"""What logs and metrics cost a million steps: `python -m benchmarks logging`.

Bytes are those that the real handlers print, over the fakes of AWS, with what Lambda adds and what
CloudWatch counts for each line. They are set against what the pipeline itself costs: requests to
SQS, S3 and DynamoDB as they were made, and Lambda by its requests alone, so that its share can only
be smaller than shown.
"""

import contextlib
import io
import json
import os
from typing import Any, Final, NamedTuple
from unittest import mock

from benchmarks import aws_prices
from tests import build, emf, happenings
from tests.event_files import event
from tests.infra.assembly import with_all_options
from tests.infra.idle_bill import idle_by_stack
from tests.memory_stage import MemoryStage

LINE_OVERHEAD: Final = 26
"""Bytes that CloudWatch Logs adds to each line before it counts them."""


class Shape(NamedTuple):
    """`together`: how many messages ingest finds in one batch."""

    calls: int
    packed_by: int
    together: int


SHAPES: Final = (Shape(1_500, 10, 1), Shape(1_500, 10, 10), Shape(60, 5, 1), Shape(60, 5, 10))


class Cost(NamedTuple):
    """Of a million steps."""

    megabytes: float
    logs: float
    pipeline: float

    @property
    def percent(self) -> float:
        return 100 * self.logs / self.pipeline


def _as_deployed() -> Any:
    """What functions log and measure by is in the environment, for as long as the block lasts."""
    deployed = {
        "POWERTOOLS_LOG_LEVEL": "INFO",
        "POWERTOOLS_METRICS_NAMESPACE": "runtally/prod",
        "POWERTOOLS_METRICS_DISABLED": "false",
    }
    return mock.patch.dict(os.environ, deployed)


def cost_of(shape: Shape) -> Cost:
    """Record a run of that shape, and count."""
    printed = io.StringIO()
    with _as_deployed(), contextlib.redirect_stdout(printed):
        stage = MemoryStage()
        invocations = _record(stage, shape)
        lines = printed.getvalue().splitlines()
    size = sum(len(line.encode()) + LINE_OVERHEAD for line in lines)
    by_lambda = map(json.dumps, event("lambda/platform-lines"))
    size += invocations * sum(len(line) + LINE_OVERHEAD for line in by_lambda)
    units = sum(sum(line.get("WriteUnits", ())) for line in emf.lines_of("\n".join(lines)))
    made = stage.calls.made
    reads = sum(call in {"dynamodb.get_item", "dynamodb.query"} for call in made)
    messages = -(-shape.calls // shape.packed_by)
    # Sent one by one; received and deleted in batches.
    requests = messages + 2 * -(-messages // shape.together) + made.count("sqs.send_message")
    pipeline = (
        requests * aws_prices.SQS_REQUEST
        + made.count("s3.put_object") * aws_prices.S3_PUT
        + int(units) * aws_prices.DYNAMODB_WRITE_UNIT
        + reads * aws_prices.DYNAMODB_READ_UNIT
        + invocations * aws_prices.LAMBDA_REQUEST
    )
    scale = aws_prices.MILLION / shape.calls
    megabytes = size * scale / 1e6
    logs = megabytes / 1e3 * float(aws_prices.LOGS_GB)
    return Cost(megabytes, logs, float(pipeline) * scale)


def _record(stage: MemoryStage, shape: Shape) -> int:
    """How often functions were invoked for it."""
    steps = [
        build.step(n, phase=f"phase-{n % 7}", cost_usd="0.0125") for n in range(1, shape.calls + 1)
    ]
    bodies = [
        build.body(*steps[first : first + shape.packed_by])
        for first in range(0, len(steps), shape.packed_by)
    ]
    bodies[0] = build.body(build.started(), *steps[: shape.packed_by])
    bodies[-1] = build.body(*steps[-shape.packed_by :], build.ended())
    invocations = 0
    for first in range(0, len(bodies), shape.together):
        stage.ingest(*bodies[first : first + shape.together])
        stage.summarize(stage.new_stream_records())
        invocations += 2
    return invocations


def custom_metrics() -> int:
    """How many a stage has to which everything happens that is told of."""
    printed = io.StringIO()
    with _as_deployed(), contextlib.redirect_stdout(printed):
        happenings.everything(MemoryStage())
        lines = [line for line in printed.getvalue().splitlines() if line.startswith("{")]
    return len(emf.measured_in(emf.lines_of("\n".join(lines))))


def measure() -> dict[str, Any]:
    costs = {shape: cost_of(shape) for shape in SHAPES}
    bill = idle_by_stack(with_all_options())
    return {
        "per_million_steps": [
            {**shape._asdict(), **cost._asdict(), "percent": cost.percent}
            for shape, cost in costs.items()
        ],
        "custom_metrics": custom_metrics(),
        "idle": {name: {**each._asdict(), "usd": each.dollars} for name, each in bill.items()},
    }


def table(found: dict[str, Any]) -> str:
    lines = ["Logs and metrics, per million steps:"]
    lines += [
        "  {calls:5,} calls packed by {packed_by:2}, {together:2} messages a batch:"
        " {megabytes:6.1f} MB, ${logs:.3f} = {percent:.1f} % of ${pipeline:.2f}".format_map(each)
        for each in found["per_million_steps"]
    ]
    metrics = found["custom_metrics"]
    dollars = metrics * aws_prices.CUSTOM_METRIC_MONTH
    lines += [
        "By the month, where all of it happens all the time:",
        f"  {metrics} custom metrics, ${dollars:.2f}; none while nothing happens",
        "By the month, idle too:",
    ]
    of_stack = (
        "  {name:13} {alarms:2} alarms on {alarm_metrics:2} metrics, {dashboards} dashboards,"
        " {polled_queues} polled queues, {sweeps} sweeps: ${usd:.2f}"
    )
    lines += [of_stack.format(name=name, **each) for name, each in found["idle"].items()]
    return "\n".join(lines)
