"""`runtally export` of one run by its real boto3 client, from a table in another process.

Memory is the most that the process ever had, with Python, boto3 and DuckDB in it.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.recount import peak
from benchmarks.served import RUN, served_run
from functions.adapters import clients
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_reading import DynamoDBRunReader
from local.export_manifest import Format, Manifest
from local.exporting import Export

CALLS: Final = (1_500, 20_000, 100_000)
_FORMATS: Final[tuple[Format, ...]] = ("parquet", "jsonl")


def measure() -> dict[str, Any]:
    return {f"{calls:,} to {name}": of(calls, name) for calls in CALLS for name in _FORMATS}


def of(calls: int, format_: Format) -> dict[str, Any]:
    with served_run(calls) as served:
        command = [sys.executable, "-m", "benchmarks.export", str(calls), format_]
        made = subprocess.run(  # noqa: S603
            command, stdout=subprocess.PIPE, check=True, env=served.environment
        )
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def table(found: dict[str, Any]) -> str:
    line = (
        "  {what:>18}: {cpu_s:5.1f} s of CPU, files of {file_mb:6.2f} MB;"
        " {peak_mb} MB of memory at most, {base_mb} before"
    )
    return "\n".join(line.format(what=what, **each) for what, each in found.items())


def _measured(calls: int, format_: Format) -> dict[str, Any]:
    import duckdb  # noqa: F401, PLC0415 - so that it is in `base_mb`

    reader = DynamoDBRunReader(DynamoDBTable(clients.dynamodb(), "t"))
    base = peak()
    with tempfile.TemporaryDirectory() as name, Manifest.opened(Path(name)) as manifest:
        began = time.process_time()
        written = Export(reader, Path(name), format_, manifest, time.time_ns)(RUN)
        cpu_s = time.process_time() - began
        if written != calls:
            raise AssertionError(f"not all of {calls} calls were written: {written}")
        size = sum(path.stat().st_size for path in Path(name).rglob("run-1.*"))
    return {
        "cpu_s": round(cpu_s, 1),
        "file_mb": round(size / 1e6, 2),
        "base_mb": round(base),
        "peak_mb": round(peak()),
    }


if __name__ == "__main__":
    json.dump(
        _measured(int(sys.argv[1]), "jsonl" if "jsonl" in sys.argv else "parquet"), sys.stdout
    )
