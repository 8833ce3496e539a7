"""What holds something keeps its logical id, or an upgrade would replace it by an empty one."""

from cdk.settings import STAGES
from tests.infra.assembly import synthesise
from tests.infra.logical_ids import ALL_OPTIONS, GOLDEN, STATEFUL, logical_ids


def test_nothing_that_holds_something_changes_its_logical_id() -> None:
    pinned, found = set(GOLDEN.read_text().splitlines()), set(logical_ids())
    gone, new = sorted(pinned - found), sorted(found - pinned)
    assert not gone, (
        "an upgrade would replace these by empty ones: give the construct its old id and place, or "
        f"`override_logical_id`; docs/upgrading.md tells what else there is: {gone}"
    )
    assert not new, f"if these are additions: python -m tests.infra.logical_ids --write: {new}"


def test_what_is_pinned_is_there_in_every_stage() -> None:
    """A snapshot of nothing would hold whatever happens."""
    lines = [line.split(" | ") for line in GOLDEN.read_text().splitlines()]
    for stage in (*STAGES, ALL_OPTIONS):
        kinds = [kind for at, _, kind, *_ in lines if at == stage]
        assert kinds.count("AWS::DynamoDB::GlobalTable") == 1
        assert kinds.count("AWS::S3::Bucket") >= 2
        assert kinds.count("AWS::SQS::Queue") >= 4
        assert kinds.count("AWS::Logs::LogGroup") >= 4


def test_what_people_would_miss_stays_when_its_stack_is_deleted() -> None:
    """Where a stage keeps its data, so does CloudFormation, when a resource is replaced too."""
    for name in ("dev", "prod"):
        for template in synthesise(name).templates:
            for logical_id, resource in template["Resources"].items():
                if resource["Type"] in STATEFUL and ":SNS:" not in resource["Type"]:
                    assert resource["DeletionPolicy"] == "Retain", logical_id
                    assert resource["UpdateReplacePolicy"] == "Retain", logical_id
