"""Who may do what, read from the templates: one line `who | action | resource` each, sorted.

    python -m tests.infra.permissions --write

writes permissions.txt, against which tests compare: in review, a change of rights then shows up as
what it is. It is written from a stage that has all there is.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.infra.assembly import Assembly, Template, path_of, with_all_options

GOLDEN: Final = Path(__file__).with_name("permissions.txt")

_RESOURCE_POLICIES: Final = {
    "AWS::S3::BucketPolicy",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
}


def permissions(assembly: Assembly) -> list[str]:
    """All that is allowed: to functions, to holders of managed policies, by resource policies."""
    names = _Names(assembly.templates)
    return sorted(
        {
            " | ".join(line)
            for template in assembly.templates
            for resource in template["Resources"].values()
            for line in _lines(resource, names)
        }
    )


class _Names:
    """Readable names for what a template refers to by logical id or by export."""

    def __init__(self, templates: tuple[Template, ...]) -> None:
        self._paths = {
            logical_id: path_of(resource)
            for template in templates
            for logical_id, resource in template["Resources"].items()
        }
        self._exports = {
            output["Export"]["Name"]: output["Value"]
            for template in templates
            for output in template.get("Outputs", {}).values()
            if "Export" in output
        }

    def of(self, value: Any) -> str:
        match value:
            case str():
                return value
            case {"Ref": str(logical_id)}:
                return self._paths.get(logical_id, logical_id)
            case {"Fn::GetAtt": [str(logical_id), str(attribute)]}:
                path = self._paths[logical_id]
                return path if attribute == "Arn" else f"{path}.{attribute}"
            case {"Fn::ImportValue": str(export)}:
                return self.of(self._exports[export])
            case {"Fn::Sub": str(pattern)}:
                return pattern
            case {"Fn::Join": [str(separator), [*parts]]}:
                return separator.join(map(self.of, parts))
        raise ValueError(f"cannot name {value!r}")


def _lines(resource: Mapping[str, Any], names: _Names) -> Iterator[tuple[str, str, str]]:
    properties = resource.get("Properties", {})
    kind = resource["Type"]
    if kind == "AWS::IAM::Policy":
        for role in properties["Roles"]:
            who = names.of(role).removesuffix("/Role").lower()
            yield from _allowed(who, properties["PolicyDocument"], names)
    elif kind == "AWS::IAM::ManagedPolicy":
        yield from _allowed(path_of(resource), properties["PolicyDocument"], names)
    elif kind == "AWS::IAM::Role":
        for arn in properties.get("ManagedPolicyArns", []):
            yield path_of(resource), "(managed policy)", names.of(arn)
        for policy in properties.get("Policies", []):
            yield from _allowed(path_of(resource), policy["PolicyDocument"], names)
    elif kind == "AWS::Lambda::Permission":
        function, source = names.of(properties["FunctionName"]), names.of(properties["SourceArn"])
        yield properties["Principal"], properties["Action"], f"{function} if source is {source}"
    elif kind in _RESOURCE_POLICIES:
        yield from _allowed("", properties["PolicyDocument"], names)


def _allowed(
    who: str, document: Mapping[str, Any], names: _Names
) -> Iterator[tuple[str, str, str]]:
    for statement in document["Statement"]:
        if statement["Effect"] != "Allow":
            continue
        holder = who or ", ".join(map(names.of, _listed(statement["Principal"].get("Service"))))
        condition = statement.get("Condition")
        for action in _listed(statement["Action"]):
            for target in _listed(statement["Resource"]):
                limits = f" if {_condition(condition, names)}" if condition else ""
                yield holder, action, names.of(target) + limits


def _condition(condition: Mapping[str, Mapping[str, Any]], names: _Names) -> str:
    return " and ".join(
        f"{key} {operator} {', '.join(map(names.of, _listed(value)))}"
        for operator, operands in condition.items()
        for key, value in operands.items()
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.infra.permissions")
    parser.add_argument("--write", action="store_true", help="replace permissions.txt")
    lines = "".join(f"{line}\n" for line in permissions(with_all_options(coordinated=True)))
    if parser.parse_args().write:
        GOLDEN.write_text(lines)
    else:
        print(lines, end="")


if __name__ == "__main__":
    main()
