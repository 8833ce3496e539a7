"""What would be lost if its logical id changed, read from the templates: one line
`stage | stack | type | logical id | path` each, sorted.

    python -m tests.infra.logical_ids --write

writes logical_ids.txt, against which tests compare. CloudFormation knows a resource by its logical
id alone: under another one it makes a new, empty resource, and deletes or orphans the old one.
"""

import argparse
import json
from pathlib import Path
from typing import Final

from cdk.settings import STAGES
from tests.infra.assembly import Assembly, path_of, synthesise, with_all_options

GOLDEN: Final = Path(__file__).with_name("logical_ids.txt")

STATEFUL: Final = {
    "AWS::DynamoDB::GlobalTable": "runs",
    "AWS::DynamoDB::Table": "runs",
    "AWS::Logs::LogGroup": "logs",
    "AWS::S3::Bucket": "payloads, results, the page's files",
    "AWS::SNS::Topic": "subscriptions that people confirmed",
    "AWS::SNS::Subscription": "a confirmation",
    "AWS::SQS::Queue": "messages, and the URL that workers were given",
}
"""Types of resources that hold something, and what it is."""

ALL_OPTIONS: Final = "(all options)"


def logical_ids() -> list[str]:
    """Of every stage that we ship, and of one with all that users may switch on."""
    assemblies = {name: synthesise(name) for name in STAGES} | {ALL_OPTIONS: with_all_options()}
    return sorted(line for name, each in assemblies.items() for line in _lines(name, each))


def _lines(stage: str, assembly: Assembly) -> list[str]:
    lines = []
    for file in assembly.folder.glob("*.template.json"):
        stack = file.name.removesuffix(".template.json").rpartition("-")[2]
        template = json.loads(file.read_text())
        lines += [
            " | ".join((stage, stack, resource["Type"], logical_id, path_of(resource)))
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] in STATEFUL
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.infra.logical_ids")
    parser.add_argument("--write", action="store_true", help="replace logical_ids.txt")
    lines = "".join(f"{line}\n" for line in logical_ids())
    if parser.parse_args().write:
        GOLDEN.write_text(lines)
    else:
        print(lines, end="")


if __name__ == "__main__":
    main()
