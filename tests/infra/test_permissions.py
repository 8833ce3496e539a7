"""Each function may do what its code does, by name, and nothing else."""

import re

from tests.infra.assembly import DEPLOYS_THE_PAGE, Assembly
from tests.infra.permissions import GOLDEN, permissions


def test_nobody_may_do_more_or_less_than_is_written_down(assembly: Assembly) -> None:
    """A stage without service entries, cache, or page and alarms, has all the rest."""
    expected = GOLDEN.read_text().splitlines()
    if not assembly.settings.service_entries:
        expected = [line for line in expected if "serviceentries/" not in line.lower()]
    if not assembly.settings.coordination:
        expected = [line for line in expected if not line.startswith("CoordinationAccess ")]
    if assembly.settings.is_local:
        only_on_aws = re.compile("page|^cloudwatch", re.IGNORECASE)
        expected = [line for line in expected if not only_on_aws.search(line)]
    assert permissions(assembly) == expected, (
        "if this is meant: python -m tests.infra.permissions --write, and review the difference"
    )


def test_no_action_and_no_whole_resource_is_a_wildcard() -> None:
    for line in GOLDEN.read_text().splitlines():
        _, action, resource = line.split(" | ")
        assert "*" not in action, line
        assert resource.partition("/")[0] != "*", line


def test_every_role_is_lambda_s_alone(assembly: Assembly) -> None:
    roles = assembly.resources("AWS::IAM::Role")
    functions = assembly.resources("AWS::Lambda::Function")
    assert {path.removesuffix("/Role") for path in roles} == {
        "PageFiles" if path == DEPLOYS_THE_PAGE else path.removesuffix("/Function")
        for path in functions
    }
    for role in roles.values():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_the_api_and_the_dead_jobs_write_no_item_but_invocations_and_tombstones() -> None:
    """Steps and keys share the table with them."""
    writes = [
        resource
        for who, action, resource in (line.split(" | ") for line in GOLDEN.read_text().splitlines())
        if action in {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
        and who in {"api", "serviceentries/deadjobs"}
    ]
    only = "Table if dynamodb:LeadingKeys ForAllValues:StringLike "
    assert writes == 2 * [f"{only}INVOCATION#*"] + [f"{only}PIPELINERUN#*", f"{only}INVOCATION#*"]
