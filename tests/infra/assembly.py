"""The stacks as CDK synthesises them, around stubs of the functions' code and the page."""

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
    from cdk.settings import CoordinationSettings, LakeSettings, StageSettings

STACKS: Final = ("data", "pipeline", "api", "observability", "web", "coordination", "lake")

DEPLOYS_THE_PAGE: Final = "Custom::CDKBucketDeployment8693BB64968944B69AAFB0CC9EB8756C"
"""Path of the one function that is CDK's, and not ours."""

CERTIFICATE: Final = "arn:aws:acm:us-east-1:123456789012:certificate/0a1b2c3d"
VPC: Final = "vpc-0a1b2c3d4e5f60718"
SUBNETS: Final = ("subnet-0a1b2c3d4e5f60718", "subnet-0123456789abcdef0")

type Template = dict[str, Any]
type Properties = dict[str, Any]

_SCRATCH: Final = Path(tempfile.mkdtemp(prefix="runtally-synth-"))
atexit.register(shutil.rmtree, _SCRATCH, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Assembly:
    """The templates of one stage, and where the cloud assembly lies until the process ends.

    There is neither `observability` nor `web` in the stage `local`, and `coordination` and `lake`
    in none that does not ask for it.
    """

    settings: "StageSettings"
    folder: Path
    data: Template
    pipeline: Template
    api: Template
    observability: Template | None = None
    web: Template | None = None
    coordination: Template | None = None
    lake: Template | None = None

    @property
    def templates(self) -> tuple[Template, ...]:
        on_aws = filter(None, (self.observability, self.web, self.coordination, self.lake))
        return (self.data, self.pipeline, self.api, *on_aws)

    def resources(self, kind: str) -> dict[str, Properties]:
        """Properties of all resources of one type in all stacks, by path of their construct."""
        found = [resources_of(template, kind) for template in self.templates]
        merged = {path: each for resources in found for path, each in resources.items()}
        assert len(merged) == sum(map(len, found)), "the same path in two stacks"
        return merged


def synthesise(stage: str, *, coordinated: bool = False) -> Assembly:
    """The assembly of a stage that we ship; with the cache, which none of them has, if asked."""
    from cdk.settings import settings_of  # noqa: PLC0415

    settings = settings_of(stage)
    if coordinated:
        settings = replace(settings, coordination=_coordination())
    return _synthesise(settings)


def with_all_options(
    sweep_minutes: int = 5,
    service_entries: tuple[str, ...] = ("research",),
    *,
    coordinated: bool = False,
    laked: bool = False,
) -> Assembly:
    """The assembly of a stage on AWS with all that is off by default.

    That is paid by use, like everything else; the cache, which is not, comes if asked for, and so
    does the lake, with all of its own options, of which the key is not.
    """
    from cdk.settings import PageDomain, settings_of  # noqa: PLC0415

    return _synthesise(
        replace(
            settings_of("dev"),
            service_entries=service_entries,
            cors_origins=("https://runs.example.com",),
            page_domain=PageDomain("runs.example.com", CERTIFICATE),
            alarm_email="on-call@example.com",
            redaction=True,
            sweep_minutes=sweep_minutes,
            coordination=_coordination() if coordinated else None,
            lake=whole_lake() if laked else None,
        )
    )


def _coordination() -> "CoordinationSettings":
    from cdk.settings import CoordinationSettings  # noqa: PLC0415

    return CoordinationSettings(VPC, SUBNETS)


def with_lake(stage: str, lake: "LakeSettings") -> Assembly:
    from cdk.settings import settings_of  # noqa: PLC0415

    return _synthesise(replace(settings_of(stage), lake=lake))


def whole_lake() -> "LakeSettings":
    """With all that it may have."""
    from cdk.settings import LakeSettings  # noqa: PLC0415

    return LakeSettings(
        retention_days=3_650,
        object_lock_days=3_650,
        infrequent_after_days=30,
        archive_after_days=90,
        own_key=True,
    )


@cache
def _synthesise(settings: "StageSettings") -> Assembly:
    """The assembly for these settings, once per process: starting CDK takes several seconds.

    Raises RuntimeError when cdk-nag finds something that nobody gave a reason for.
    """
    folder = Path(tempfile.mkdtemp(dir=_SCRATCH))
    new_app(settings, folder).synth()
    templates: dict[str, Template] = {
        stack: json.loads(file.read_text())
        for stack in STACKS
        if (file := folder / f"{settings.prefix}-{stack}.template.json").exists()
    }
    return Assembly(settings, folder, **templates)


def new_app(settings: "StageSettings", folder: Path) -> Any:
    """The CDK app of a stage, to be synthesised into a folder."""
    # Not before it is needed: the import starts CDK.
    from aws_cdk import App  # noqa: PLC0415

    from cdk.app import add_stacks  # noqa: PLC0415

    app = App(outdir=str(folder), context=context_of(settings.stage))
    add_stacks(app, settings)
    return app


def context_of(stage: str) -> dict[str, Any]:
    """What CDK's command line hands to the app, with stubs in place of code and page."""
    stub, page = _SCRATCH / "stub", _SCRATCH / "page"
    stub.mkdir(exist_ok=True)
    (stub / "stub.py").write_text("")
    page.mkdir(exist_ok=True)
    (page / "index.html").write_text("")
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context | {
        "stage": stage,
        "bundle": str(stub),
        "page": str(page),
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
