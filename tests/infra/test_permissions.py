"""Each function may do what its code does, by name, and nothing else."""

from tests.infra.assembly import Assembly, resources_of
from tests.infra.permissions import GOLDEN, permissions


def test_nobody_may_do_more_or_less_than_is_written_down(assembly: Assembly) -> None:
    assert permissions(assembly) == GOLDEN.read_text().splitlines(), (
        "if this is meant: python -m tests.infra.permissions --write, and review the difference"
    )


def test_no_action_and_no_whole_resource_is_a_wildcard() -> None:
    for line in GOLDEN.read_text().splitlines():
        _, action, resource = line.split(" | ")
        assert "*" not in action, line
        assert resource.partition("/")[0] != "*", line


def test_every_role_is_lambda_s_alone(assembly: Assembly) -> None:
    roles = resources_of(assembly.pipeline, "AWS::IAM::Role")
    assert {path.removesuffix("/Role") for path in roles} == {"Ingest", "Summarize", "Recount"}
    for role in roles.values():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}
