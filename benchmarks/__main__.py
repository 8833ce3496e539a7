"""Measure what runtally costs, and how fast it is. docs/performance.md shows what came out.

python -m benchmarks                 everything, one after the other
python -m benchmarks cost hot        these
python -m benchmarks --json          the figures, by name
python -m benchmarks --into F        the same, into a file, one by one; others stay in it
"""

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Protocol, cast

from benchmarks.missing import NotHere
from local.progress import doing

BENCHMARKS: Final = {
    "cost": "requests, write units and dollars per million steps, beside other designs",
    "cpu": "instructions and CPU time per step, beside boto3 put by put",
    "cold": "what every function imports and makes before its first event, and the bundles",
    "recount": "a recount of 1,500, 20,000 and 100,000 steps: CPU, memory, read units",
    "read": "the detail of a run with 1,500 and with 100,000 calls",
    "export": "an export of 1,500, 20,000 and 100,000 calls: CPU, memory, size of the files",
    "lake": "runs of 60, 1,500 and 100,000 calls to the lake: CPU, memory, dollars",
    "sdk": "what recording adds to an agent's thread; memory and loss with SQS slow or down",
    "hot": "one run at up to 10,000 steps a second, 1 and 8 buckets; 200 runs of one tenant",
    "sustain": "events a second end to end on the embedded AWS, for minutes: lag and memory",
    "otlp": "CPU of decoding and mapping 512 spans",
    "page": "how a run of 33,000 calls feels in a browser",
    "logging": "what logs and metrics cost, and what a stage costs while idle",
    "redaction": "CPU of redaction per megabyte",
    "coordination": "calls a second and p99 of each primitive beside bare calls; ECPUs a call",
}


class Benchmark(Protocol):
    """A module of this package, by its name."""

    def measure(self) -> dict[str, Any]:
        """The figures, as JSON has them. Raises NotHere where the machine lacks what it needs."""

    def table(self, found: dict[str, Any]) -> str:
        """The figures for people."""


def main() -> int:
    width = max(map(len, BENCHMARKS))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="\n".join(f"  {name:{width}}  {what}" for name, what in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="one of those below")
    parser.add_argument("--json", action="store_true", help="one JSON object, by name")
    parser.add_argument("--into", metavar="F", type=Path, help="a JSON file that keeps figures")
    wanted = parser.parse_args()
    unknown = sorted(set(wanted.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    names = wanted.names or list(BENCHMARKS)
    found: dict[str, Any] = {}
    for name in names:
        found[name] = _measured(name) if len(names) == 1 else _measured_apart(name)
        if wanted.into:
            _keep(wanted.into, {name: found[name]})
    if wanted.json:
        sys.stdout.write(f"{json.dumps(found, indent=2)}\n")
    else:
        sys.stdout.write("\n\n".join(_told(name, of) for name, of in found.items()) + "\n")
    return int(any("not_here" in of for of in found.values()))


def _measured(name: str) -> dict[str, Any]:
    os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # functions print what they did
            return _benchmark(name).measure()
    except NotHere as lack:
        return {"not_here": str(lack)}


def _measured_apart(name: str) -> dict[str, Any]:
    """In a process of its own: what one imports and allocates must not be seen by the next."""
    command = [sys.executable, "-m", "benchmarks", name, "--json"]
    with doing(name):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if not done.stdout:
        sys.exit(f"benchmarks: {name} failed; what is before this says why")
    measured: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return measured[name]


def _keep(file: Path, found: dict[str, Any]) -> None:
    """Half an hour of measuring must not be lost with the last of it."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(kept | found, indent=2))


def _told(name: str, found: dict[str, Any]) -> str:
    told = found.get("not_here") or _benchmark(name).table(found)
    return f"{name}: {BENCHMARKS[name]}\n{told}"


def _benchmark(name: str) -> Benchmark:
    return cast("Benchmark", importlib.import_module(f"benchmarks.{name}"))


if __name__ == "__main__":
    sys.exit(main())
