"""Runs the programs of examples/integrations as their users do."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from local.paths import ROOT

EXAMPLES: Final = ROOT / "examples" / "integrations"
_TIMEOUT_S: Final = 240
_OUT_OF_REACH: Final = (
    "dns error", "error sending request", "Request failed after", "ENOTFOUND", "EAI_AGAIN",
    "ECONNREFUSED", "ETIMEDOUT", "network timeout",
)  # fmt: skip


def run_script(name: str, environment: Mapping[str, str]) -> str:
    """What the script prints. Skips the test where its packages cannot be had."""
    uv = os.environ.get("UV") or shutil.which("uv") or pytest.skip("uv is not installed")
    script = str(EXAMPLES / name)
    needed = {"UV_PYTHON": sys.executable}
    _install([uv, "sync", "--quiet", "--script", script], needed)
    return _output_of([uv, "run", "--quiet", "--script", script], {**needed, **environment})


def run_node(name: str, directory: Path, environment: Mapping[str, str]) -> str:
    """What a folder's `agents.mjs` prints, run from a copy with the locked packages."""
    if not shutil.which("npm"):
        pytest.skip("Node is not installed")
    shutil.copytree(EXAMPLES / name, directory)
    _install(["npm", "ci", "--no-audit", "--no-fund"], {}, directory)
    return _output_of(["node", "agents.mjs"], environment, directory)


def _install(
    command: Sequence[str], environment: Mapping[str, str], directory: Path | None = None
) -> None:
    """Skips the test where the registry cannot be reached; fails for anything else."""
    done = run(command, environment, directory)
    if done.returncode and any(sign in done.stderr for sign in _OUT_OF_REACH):
        pytest.skip(f"the package registry is out of reach: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def _output_of(
    command: Sequence[str], environment: Mapping[str, str], directory: Path | None = None
) -> str:
    done = run(command, environment, directory)
    assert done.returncode == 0, done.stderr
    assert "export" not in done.stderr, done.stderr  # how exporters begin to complain
    return done.stdout


def run(
    command: Sequence[str], environment: Mapping[str, str], directory: Path | None
) -> subprocess.CompletedProcess[str]:
    """With these variables and, of one's own, all that lead no exporter or model elsewhere."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "OPENAI_", "AWS_", "RUNTALLY_", "VIRTUAL_ENV"))
    }
    return subprocess.run(  # noqa: S603 - commands of this file
        command,
        cwd=directory,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
