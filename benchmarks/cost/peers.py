"""What other ways to keep the same steps cost, on the embedded AWS; `peer_programs` has them.

Each runs in a process of its own, the libraries' with their own packages (PEP 723). Requests are
counted by botocore's hooks, write units as DynamoDB tells them. Nothing else is charged to them: no
queue, no function, no reads of DynamoDB.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.cost.bars import NO_COUNTERS
from benchmarks.cost.usage import Usage
from benchmarks.missing import NotHere
from local import commands
from local.emulator import Emulator
from local.paths import ROOT
from runtally import wire

PEERS: Final = ROOT / "benchmarks" / "cost" / "peer_programs"
_OUT_OF_REACH: Final = ("dns error", "error sending request", "Request failed after")
_TIMEOUT_S: Final = 600


class Peer(NamedTuple):
    """`packages` says whether the program brings its own. `most` steps are enough of one whose
    steps all cost the same, or copy all of those before."""

    program: str
    arguments: tuple[str, ...]
    packages: bool = False
    most: int = 1_500


DESIGNS: Final = {
    NO_COUNTERS: Peer("designs.py", ("put_per_step",)),
    "… and counters and preview (6 KB) on the run's item": Peer("designs.py", ("run_item", "60")),
    "… and counters and preview (40 KB) on the run's item": Peer("designs.py", ("run_item", "400")),
}
LIBRARIES: Final = {
    "DynamoDBSaver, state keeps the newest message": Peer(
        "dynamodb_saver.py", ("newest",), packages=True, most=300
    ),
    "DynamoDBSaver, state grows by a message a step": Peer(
        "dynamodb_saver.py", ("growing",), packages=True
    ),
    "DynamoDBSaver, growing, with its S3 offload": Peer(
        "dynamodb_saver.py", ("growing", "offload"), packages=True, most=300
    ),
    "S3SessionManager": Peer("s3_session_manager.py", (), packages=True),
}


def usage_of(peer: Peer, steps: Sequence[wire.Step]) -> Usage:
    """Raises NotHere when the peer's packages, or the embedded AWS, cannot be fetched."""
    try:
        return _usage_of(_command(peer), steps[: peer.most])
    except commands.LocalStageError as error:
        raise NotHere(str(error)) from error


def _usage_of(command: Sequence[str], steps: Sequence[wire.Step]) -> Usage:
    with tempfile.TemporaryDirectory() as folder, Emulator() as aws:
        recorded = Path(folder) / "steps.json"
        recorded.write_bytes(msgspec.json.encode(steps))
        variables = aws.access.variables() | {"RUNTALLY_BENCHMARK_STEPS": str(recorded)}
        printed = _output_of(command, variables)
    told: dict[str, Any] = json.loads(printed.splitlines()[-1])
    seen = {name: told[name] for name in ("requests", "stopped") if told.get(name)}
    return Usage(told["steps"], told["counted"], seen=seen)


def _command(peer: Peer) -> list[str]:
    program = str(PEERS / peer.program)
    count = [str(peer.most)] if peer.packages else []
    if not peer.packages:
        return [sys.executable, program, *count, *peer.arguments]
    uv = commands.uv()
    _install([uv, "sync", "--quiet", "--locked", "--script", program])
    return [uv, "run", "--quiet", "--locked", "--script", program, *count, *peer.arguments]


def _install(command: Sequence[str]) -> None:
    done = _run(command, {})
    why = [line for line in done.stderr.splitlines() if any(sign in line for sign in _OUT_OF_REACH)]
    if done.returncode and why:
        raise NotHere(f"its packages cannot be fetched: {why[-1].strip()}")
    if done.returncode:
        raise AssertionError(done.stderr)


def _output_of(command: Sequence[str], variables: dict[str, str]) -> str:
    done = _run(command, variables)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


def _run(command: Sequence[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Without variables that lead to an account, or that say which environment is active."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "OTEL_", "LANG", "RUNTALLY_", "VIRTUAL_ENV"))
    }
    return subprocess.run(  # noqa: S603 - commands of this file
        command,
        env={**kept, "UV_PYTHON": sys.executable, **variables},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
