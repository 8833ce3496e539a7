"""What may delete, and what the last look of a deletion stands on."""

from tests.infra.assembly import Assembly
from tests.infra.permissions import permissions
from tests.infra.test_stacks import our_functions

ITEMS_OF_RUNS = "Table if dynamodb:LeadingKeys ForAllValues:StringLike PIPELINERUN#*"
MARGIN_S = 60
"""For clocks, and for requests that are still on their way when a function ends."""


def test_no_function_may_write_for_as_long_as_a_deletion_stays_quiet(
    aws_assembly: Assembly,
) -> None:
    """Whoever read a run before its tombstone was put is gone before the last look begins."""
    functions = our_functions(aws_assembly)
    quiet_s = int(functions["Erase/Function"]["Environment"]["Variables"]["RUNTALLY_QUIET_S"])
    for path, function in functions.items():
        assert function["Timeout"] + MARGIN_S <= quiet_s, path
    assert quiet_s <= 900  # the longest delay of a message


def test_nothing_but_erase_may_delete_items_or_objects(assembly: Assembly) -> None:
    """And erase only below its two prefixes, and only items of runs."""
    deleting = {
        line
        for line in permissions(assembly)
        if any(word in line for word in ("Delete", "BatchWrite", "Remove"))
        and "sqs:DeleteMessage" not in line
        and not line.startswith(("pagefiles", "cloudfront"))
    }
    assert deleting == {
        f"erase | dynamodb:BatchWriteItem | {ITEMS_OF_RUNS}",
        "erase | s3:DeleteObject | Bucket/agent-runs/*",
        "erase | s3:DeleteObject | Bucket/inbox/*",
        "erase | s3:DeleteObjectVersion | Bucket/agent-runs/*",
        "erase | s3:DeleteObjectVersion | Bucket/inbox/*",
    }


def test_erase_lists_what_it_may_delete(assembly: Assembly) -> None:
    assert (
        "erase | s3:ListBucketVersions | Bucket if s3:prefix StringLike agent-runs/*, inbox/*"
        in permissions(assembly)
    )
