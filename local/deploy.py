"""The CDK app that goes to AWS, deployed to the embedded AWS with the CDK's own command line."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from local import commands
from local.commands import Command, LocalStageError
from local.emulator import ACCOUNT, REGION, Emulator
from local.paths import BUILD, CDK, LOGS, NODE_MODULES, ROOT
from local.stage import Stage

ASSEMBLY: Final = BUILD / "cdk-local"
_INPUTS: Final = (
    *(ROOT / folder for folder in ("cdk", "functions", "sdk/runtally")),
    *(ROOT / file for file in ("cdk.json", "uv.lock", "package-lock.json")),
)
_NODE_ADVICE: Final = "Run `make setup`: it says what is missing and how to get it."
_CODE_ADVICE: Final = (
    "Most likely the functions or the CDK app were changed; `make check` may know."
)


def deploy(emulator: Emulator) -> Stage:
    """Build the functions, synthesise, bootstrap and deploy all stacks of the stage `local`.

    Raises LocalStageError with the end of the log of whatever failed.
    """
    _need_node()
    environment = _environment() | emulator.access.variables()
    bootstrap = Command(
        [CDK, "bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", ""],
        environment,
        LOGS / "cdk-bootstrap.txt",
        "The embedded AWS may be short of memory or time; try again.",
    )
    with bootstrap, commands.only_one("assembly"):
        # One assembly, whoever deploys it: it holds no address and no credentials.
        _synthesise()
        bootstrap.finish(within_s=120)
        outputs = emulator.folder / "outputs.json"
        commands.run(
            [CDK, "deploy", "--all", "--app", ASSEMBLY, "--require-approval", "never",
             "--outputs-file", outputs],
            env=environment,
            log="cdk-deploy.txt",
            advice=_CODE_ADVICE,
        )  # fmt: skip
    return _stage_of(outputs, emulator)


def _synthesise() -> None:
    """Needs no AWS, so that it may run while the embedded one is being prepared."""
    inputs = _fingerprint()
    done = BUILD / "cdk-local.fingerprint"
    if ASSEMBLY.exists() and done.exists() and done.read_text() == inputs:
        return
    done.unlink(missing_ok=True)
    environment = _environment()
    commands.run(
        [sys.executable, "-m", "cdk.bundle", "--platform", "local"],
        env=environment,
        log="bundle.txt",
        advice="If a download failed: see whether a package index can be reached.",
    )
    commands.run(
        [CDK, "synth", "--quiet", "--context", "stage=local", "--output", ASSEMBLY],
        env=environment,
        log="cdk-synth.txt",
        advice=_CODE_ADVICE,
    )
    done.write_text(inputs)


def _fingerprint() -> str:
    """Changes with whatever the assembly is made from: sources, settings, locked versions."""
    inputs = [path for path in _INPUTS if path.is_file()]
    inputs += [path for folder in _INPUTS for path in folder.rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(inputs):
        if "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(ROOT)} {content}\n".encode())
    return digest.hexdigest()


def _need_node() -> None:
    if CDK.exists():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise LocalStageError("Node's package manager, npm, was not found.", _NODE_ADVICE)
    with commands.only_one("node-modules"):
        if not CDK.exists():
            NODE_MODULES.mkdir(exist_ok=True)
            commands.run([npm, "ci"], log="npm-ci.txt", advice=_NODE_ADVICE)


def _environment() -> dict[str, str]:
    """Ours, without any AWS account; this Python first, for `cdk.json`; nothing kept elsewhere."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "CDK_"))}
    places = [str(Path(sys.executable).parent), str(Path(commands.uv()).parent)]
    return ours | {
        "PATH": os.pathsep.join([*places, os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": str(ROOT),
        "CDK_HOME": str(BUILD / "cdk-home"),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
        "CI": "1",
    }


def _stage_of(outputs: Path, emulator: Emulator) -> Stage:
    stacks: dict[str, dict[str, str]] = json.loads(outputs.read_text())
    merged = {name: value for stack in stacks.values() for name, value in stack.items()}
    try:
        return Stage.of_outputs(merged, emulator.access)
    except KeyError as missing:
        failed = f"The stacks have no output {missing}."
        raise LocalStageError(failed, _CODE_ADVICE, LOGS / "cdk-deploy.txt") from None
