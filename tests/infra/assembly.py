"""The stacks as CDK synthesises them, around a stub of the functions' code."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdk.bundle import ROOT

if TYPE_CHECKING:
    from cdk.settings import StageSettings

STACKS: Final = ("data", "pipeline", "api")

type Template = dict[str, Any]
type Properties = dict[str, Any]

_SCRATCH: Final = Path(tempfile.mkdtemp(prefix="runtally-synth-"))
atexit.register(shutil.rmtree, _SCRATCH, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Assembly:
    """The templates of one stage, and where the cloud assembly lies until the process ends."""

    settings: "StageSettings"
    folder: Path
    data: Template
    pipeline: Template
    api: Template

    @property
    def templates(self) -> tuple[Template, ...]:
        return self.data, self.pipeline, self.api

    def resources(self, kind: str) -> dict[str, Properties]:
        """Properties of all resources of one type in all stacks, by path of their construct."""
        found = [resources_of(template, kind) for template in self.templates]
        merged = {path: each for resources in found for path, each in resources.items()}
        assert len(merged) == sum(map(len, found)), "the same path in two stacks"
        return merged


def synthesise(stage: str) -> Assembly:
    """The assembly of a stage that we ship."""
    from cdk.settings import settings_of  # noqa: PLC0415

    return _synthesise(settings_of(stage))


def with_all_options() -> Assembly:
    """The assembly of a stage on AWS with all that is off by default."""
    from cdk.settings import settings_of  # noqa: PLC0415

    return _synthesise(
        replace(
            settings_of("dev"),
            service_entries=("research",),
            cors_origins=("https://runs.example.com",),
        )
    )


@cache
def _synthesise(settings: "StageSettings") -> Assembly:
    """The assembly for these settings, once per process: starting CDK takes several seconds.

    Raises RuntimeError when cdk-nag finds something that nobody gave a reason for.
    """
    folder = Path(tempfile.mkdtemp(dir=_SCRATCH))
    new_app(settings, folder).synth()
    data, pipeline, api = (
        json.loads((folder / f"{settings.prefix}-{stack}.template.json").read_text())
        for stack in STACKS
    )
    return Assembly(settings, folder, data, pipeline, api)


def new_app(settings: "StageSettings", folder: Path) -> Any:
    """The CDK app of a stage, to be synthesised into a folder."""
    # Not before it is needed: the import starts CDK.
    from aws_cdk import App  # noqa: PLC0415

    from cdk.app import add_stacks  # noqa: PLC0415

    app = App(outdir=str(folder), context=context_of(settings.stage))
    add_stacks(app, settings)
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
