"""A run written to the lake, as its function does it: real Parquet, by its real boto3 clients, from
a table in another process. S3 answers before a request leaves, as if there were no file yet.

CPU is that of this process, in rounds after one that made the connections; memory is the most that
it ever had, with Python, boto3 and DuckDB in it. Steps are read twice, strongly consistent, once to
fold them and once to write them; each other item that is read is one more unit. Lambda's time is
CPU as measured here, and waiting for AWS as a model (benchmarks/cost/lambda_time.py).
"""

import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from typing import Any, Final

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from benchmarks.cost.lambda_time import FULL_CORE_MB, WAIT_S
from benchmarks.cost.usage import Usage
from benchmarks.recount import peak
from benchmarks.served import RUN, Served, served_run
from functions.adapters import clients
from functions.adapters.settings import LakeSettings
from functions.lake import handler

ROUNDS: Final = {60: 9, 1_500: 9, 100_000: 3}
MEMORY_MB: Final = FULL_CORE_MB
"""As cdk/lake_stack.py gives it."""
_RETENTION_DAYS: Final = 365
_CHUNK: Final = 1024 * 1024


def measure() -> dict[str, Any]:
    return {f"{calls:,}": _of(calls) for calls in ROUNDS}


def _of(calls: int) -> dict[str, Any]:
    with served_run(calls) as served:
        _run("benchmarks.recount", calls, served)  # a run without a summary is not written
        found: dict[str, Any] = json.loads(_run("benchmarks.lake", calls, served))
    requests: dict[str, int] = found["requests"]
    waiting_s = sum(WAIT_S[name] * count for name, count in requests.items())
    gb = MEMORY_MB / 1_024
    usage = Usage(
        calls,
        counted={
            "s3_puts": requests["s3.put_object"],
            "s3_gets": requests["s3.head_object"],
            "read_units": 2 * served.read_units + requests["dynamodb.get_item"],
            "write_units": found.pop("write_units"),
            "lambda_requests": 1,
        },
        gb_seconds={"cpu": found["cpu_s_best"] * gb, "waiting": waiting_s * gb},
    )
    return {**found, "lambda_s": round(found["cpu_s_best"] + waiting_s, 1), **usage.figures()}


def _run(module: str, calls: int, served: Served) -> bytes:
    command = [sys.executable, "-m", module, str(calls)]
    made = subprocess.run(  # noqa: S603
        command, stdout=subprocess.PIPE, check=True, env=served.environment
    )
    return made.stdout


def table(found: dict[str, Any]) -> str:
    line = (
        "  {calls:>7} calls: {cpu_s_best:6.2f} s of CPU at best, {cpu_s_median:.2f} in the middle,"
        " {lambda_s} s in Lambda; {peak_mb} MB at most, {base_mb} before; {file_mb} MB of Parquet;"
        " {requests}; ${counted_usd} a million steps, ${usd_per_million} with Lambda's time"
    )
    return "\n".join(line.format(calls=calls, **of) for calls, of in found.items())


class Counting:
    """Requests of clients, by name, and the bytes that were put."""

    def begin(self) -> None:
        self.requests: Counter[str] = Counter()
        self.put_bytes = 0

    def listen(self, client: Any, service: str) -> None:
        client.meta.events.register(f"before-send.{service}", self._count)

    def _count(self, request: Any, event_name: str, **_: Any) -> AWSResponse | None:
        service, operation = event_name.split(".")[1:]
        self.requests[f"{service}.{_NAMES[operation]}"] += 1
        if service != "s3":
            return None
        if operation == "HeadObject":
            return _Stored(request.url, 404, HTTPHeaders(), None)
        while request.body.read(_CHUNK):
            """Its checksum is made as it is read."""
        self.put_bytes += int(request.headers["X-Amz-Decoded-Content-Length"])
        return _Stored(request.url, 200, HTTPHeaders(), None)


_NAMES: Final = {
    "GetItem": "get_item",
    "HeadObject": "head_object",
    "PutItem": "put_item",
    "PutObject": "put_object",
    "Query": "query",
}


class _Stored(AWSResponse):
    @property
    def content(self) -> bytes:
        return b""


def _measured(calls: int) -> dict[str, Any]:
    dynamodb, s3, counting = clients.dynamodb(), clients.s3(), Counting()
    counting.listen(dynamodb, "dynamodb")
    counting.listen(s3, "s3")
    settings = LakeSettings("t", "l", _RETENTION_DAYS)
    parts = handler.lake_over(dynamodb, s3, settings, time.time_ns)
    base = peak()
    took: list[float] = []
    for _ in range(1 + ROUNDS[calls]):
        counting.begin()
        parts.table.take_consumption()
        began = time.process_time()
        written = parts.write(RUN)
        took.append(time.process_time() - began)
        if written is None or written.rows < calls:
            raise AssertionError(f"not all of {calls} calls were written: {written}")
    return {
        "cpu_s_best": round(min(took[1:]), 3),
        "cpu_s_median": round(statistics.median(took[1:]), 3),
        "base_mb": round(base),
        "peak_mb": round(peak()),
        "file_mb": round(counting.put_bytes / 1e6, 2),
        "requests": dict(counting.requests),
        "write_units": parts.table.take_consumption()["WriteUnits"],
    }


if __name__ == "__main__":
    json.dump(_measured(int(sys.argv[1])), sys.stdout)
