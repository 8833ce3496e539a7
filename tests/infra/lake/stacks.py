"""The stack of a lake as it is synthesised: with as little as it may have, and with all."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from aws_cdk import App

from cdk.data_stack import DataStack
from cdk.lake_stack import LakeStack
from cdk.settings import LakeSettings, settings_of
from tests.infra.assembly import (
    Assembly,
    Properties,
    Template,
    resources_of,
    whole_lake,
    with_lake,
)

PLAIN = LakeSettings(retention_days=3_650)


def stack_of(assembly: Assembly) -> Template:
    assert assembly.lake
    return assembly.lake


def plain() -> Template:
    return stack_of(with_lake("dev", PLAIN))


def whole() -> Template:
    return stack_of(with_lake("dev", whole_lake()))


def alone(tmp_path: Path, asked: LakeSettings) -> Template:
    """The stack without the rest of its stage, which takes seconds to synthesise."""
    app = App(outdir=str(tmp_path))
    settings = replace(settings_of("dev"), lake=asked)
    code = tmp_path / "code"
    code.mkdir()
    (code / "stub.py").touch()
    LakeStack(app, settings, asked, DataStack(app, settings, None), code)
    app.synth()
    template: Template = json.loads((tmp_path / "runtally-dev-lake.template.json").read_text())
    return template


def only(stack: Template, kind: str, path: str = "") -> Properties:
    found = resources_of(stack, kind)
    return found[path] if path else next(iter(found.values()))


def text(value: Any) -> str:
    """With the names of what is referred to in its place."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return name
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(map(text, parts))
    return "?"
