"""The stacks as CDK synthesises them, around a stub of the functions' code."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from cdk.bundle import ROOT

type Template = dict[str, Any]
type Properties = dict[str, Any]

_SCRATCH: Final = Path(tempfile.mkdtemp(prefix="runtally-synth-"))
atexit.register(shutil.rmtree, _SCRATCH, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Assembly:
    """The templates of one stage, and where the cloud assembly lies until the process ends."""

    folder: Path
    data: Template
    pipeline: Template

    @property
    def templates(self) -> tuple[Template, Template]:
        return self.data, self.pipeline


@cache
def synthesise(stage: str) -> Assembly:
    """The stage's assembly, once per process: starting CDK takes several seconds.

    Raises RuntimeError when cdk-nag finds something that nobody gave a reason for.
    """
    folder = _SCRATCH / stage
    new_app(stage, folder).synth()
    return Assembly(
        folder,
        json.loads((folder / f"runtally-{stage}-data.template.json").read_text()),
        json.loads((folder / f"runtally-{stage}-pipeline.template.json").read_text()),
    )


def new_app(stage: str, folder: Path) -> Any:
    """The CDK app of a stage, to be synthesised into a folder."""
    # Not before it is needed: the import starts CDK.
    from aws_cdk import App  # noqa: PLC0415

    from cdk.app import add_stacks  # noqa: PLC0415

    app = App(outdir=str(folder), context=context_of(stage))
    add_stacks(app)
    return app


def context_of(stage: str) -> dict[str, Any]:
    """What CDK's command line hands to the app, with a stub in place of the functions' code."""
    stub = _SCRATCH / "stub"
    stub.mkdir(exist_ok=True)
    (stub / "stub.py").write_text("")
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context | {
        "stage": stage,
        "bundle": str(stub),
        "aws:cdk:enable-path-metadata": True,
    }


def resources_of(template: Template, kind: str) -> dict[str, Properties]:
    """Properties of all resources of one type, by path of their construct below the stack."""
    return {
        path_of(resource): resource.get("Properties", {})
        for resource in template["Resources"].values()
        if resource["Type"] == kind
    }


def path_of(resource: Mapping[str, Any]) -> str:
    path: str = resource["Metadata"]["aws:cdk:path"]
    return path.partition("/")[2].removesuffix("/Resource")
