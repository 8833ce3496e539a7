"""The folders of code: `functions/`, `runtally/` and what they import.

    python -m cdk.bundle --platform local|aws

One for all functions, because they share nearly everything and one asset uploads once; and one for
the api, with what reads OTLP, which would be a quarter of the other. What the managed rules of
redaction need is as large as all of that, so an api that redacts has a folder of its own; the
lake's DuckDB is over ten times as large, and no other function has it. boto3 is left out: Lambda's
runtime brings it. What a function imports when it starts is there as bytecode, too: Lambda's folder
of code is read-only, and every cold start would compile it anew.

Dependencies come from uv.lock with their hashes, and are installed anew only when the lock changed,
so that after the first time a build needs no network. CDK's asset hash looks at content alone: the
same sources and lock give the same hash.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from cdk.stamp import Stamp, alone, state_of

Platform = Literal["local", "aws"]
Bundle = Literal["functions", "api", "redacting-api", "lake"]

ROOT: Final = Path(__file__).parent.parent
BUILD: Final = ROOT / "build"

_RECIPE: Final = Path(__file__)
_LOCK: Final = ROOT / "uv.lock"
_SOURCES: Final = {"functions": ROOT / "functions", "runtally": ROOT / "sdk" / "runtally"}
_GROUPS: Final[dict[Bundle, tuple[str, ...]]] = {
    "functions": (),
    "api": ("--group=otlp",),
    "redacting-api": ("--group=otlp", "--group=redact"),
    "lake": ("--group=lake",),
}
_LEFT_OUT: Final[dict[Bundle, tuple[str, ...]]] = {
    "functions": ("otel", "prices"),
    "api": (),
    "redacting-api": (),
    "lake": ("otel", "prices"),
}
BUNDLES: Final = tuple(_GROUPS)
STARTED: Final[dict[Bundle, tuple[str, ...]]] = {
    "functions": (
        "functions.ingest.handler",
        "functions.summarize.handler",
        "functions.summarize.recount_handler",
        "functions.sweep.handler",
        "functions.erase.handler",
        "functions.api.dead_jobs_handler",
    ),
    "api": ("functions.api.handler", "runtally.otel.otlp_protobuf"),
    "redacting-api": (
        "functions.api.handler",
        "runtally.otel.otlp_protobuf",
        "runtally.managed_rules",
    ),
    "lake": ("functions.lake.handler",),
}
_METADATA: Final[dict[Bundle, str]] = {"lake": "duckdb-*.dist-info/METADATA"}
"""Of what asks for its own version when it is imported; all other packages do without."""
_PYTHON: Final = "3.13"
_LAMBDAS_FOLDER: Final = "/var/task"
_PLATFORM_OPTIONS: Final[dict[Platform, tuple[str, ...]]] = {
    "local": (),
    # As old as Lambda's Amazon Linux 2023 lets it be, or as DuckDB does.
    "aws": ("--python-platform", "aarch64-manylinux_2_28"),
}
_NOT_CODE: Final = ("__pycache__", "*.pyc", "*.dist-info", ".lock", "bin", "swagger_ui")


def build(
    platform: Platform,
    bundle: Bundle = "functions",
    into: Path = BUILD,
    sources: Mapping[str, Path] = _SOURCES,
) -> Path:
    """The up-to-date code folder for a platform: `{bundle}-{platform}` in `into`.

    Nothing is touched when no source and no dependency changed, so that whoever reads the folder at
    the same time is not disturbed; of several builders one works and the others wait.
    """
    target = into / f"{bundle}-{platform}"
    with alone(into / "functions"):
        dependencies = _install_dependencies(platform, bundle, into)
        stamp = Stamp(target, state_of(_RECIPE, *sources.values(), _LOCK))
        if not stamp.fits():
            with stamp.renewing():
                ignored = shutil.ignore_patterns(*_NOT_CODE)
                shutil.copytree(dependencies, target, ignore=ignored, dirs_exist_ok=True)
                ignored = shutil.ignore_patterns(*_NOT_CODE, *_LEFT_OUT[bundle])
                for file in dependencies.glob(_METADATA[bundle]) if bundle in _METADATA else ():
                    (target / file.parent.name).mkdir()
                    shutil.copy(file, target / file.parent.name)
                for name, source in sources.items():
                    shutil.copytree(source, target / name, ignore=ignored)
                _compile(target, STARTED[bundle])
    return target


def requirements(bundle: Bundle = "functions") -> str:
    """The locked third-party packages of a bundle, with hashes, in the form that pip reads."""
    return _uv(
        "export",
        "--quiet",
        "--frozen",
        "--no-default-groups",
        *_GROUPS[bundle],
        "--no-emit-workspace",
        "--no-header",
        "--no-annotate",
        "--prune=boto3",
    )


def _install_dependencies(platform: Platform, bundle: Bundle, into: Path) -> Path:
    target = into / f"dependencies-{bundle}-{platform}"
    stamp = Stamp(target, state_of(_RECIPE, _LOCK))
    if not stamp.fits():
        with stamp.renewing():
            _uv(
                "pip",
                "install",
                "--quiet",
                f"--target={target}",
                f"--python-version={_PYTHON}",
                "--only-binary=:all:",
                "--no-deps",
                "--require-hashes",
                *_PLATFORM_OPTIONS[platform],
                "--requirement=-",
                stdin=requirements(bundle),
            )
    return target


def _compile(target: Path, started: Sequence[str]) -> None:
    """Bytecode of what these modules import; it is never checked against its source, whose time of
    change an archive does not keep (PEP 552)."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" != _PYTHON:
        return  # Lambda's Python would not read it
    listing = f"import sys, {', '.join(started)}; print(*sys.modules)"
    modules = _python("-B", "-c", listing).split()
    paths = [Path(*module.split(".")) for module in modules]
    files = [path for p in paths for path in (p.with_suffix(".py"), p / "__init__.py")]
    there = sorted(str(target / file) for file in files if (target / file).is_file())
    how = ("--invalidation-mode=unchecked-hash", "-s", str(target), "-p", _LAMBDAS_FOLDER)
    # In a process that has nothing else in memory: the same source gives the same bytes.
    _python("-I", "-S", "-m", "compileall", "-q", *how, "-i", "-", stdin="\n".join(there))


def _python(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, *arguments],
        cwd=ROOT,
        input=stdin,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def _uv(*arguments: str, stdin: str | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - fixed arguments
        # `uv run` names itself in UV, and need not be on the PATH.
        [os.environ.get("UV", "uv"), *arguments],
        cwd=ROOT,
        input=stdin,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cdk.bundle", description=__doc__)
    parser.add_argument("--platform", choices=("local", "aws"), default="aws")
    platform: Platform = parser.parse_args().platform
    for bundle in BUNDLES:
        folder = build(platform, bundle)
        size = size_of(folder) / 1e6
        print(f"{folder.relative_to(ROOT)}: {size:.2f} MB")  # noqa: T201 - its output


if __name__ == "__main__":
    main()
