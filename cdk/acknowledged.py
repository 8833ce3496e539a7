"""Findings of cdk-nag that are meant to be so, each with its reason next to what causes it."""

from typing import Final, cast

from aws_cdk import Acknowledgment, Resource, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

_OF_RUNS: Final = (
    "Objects are named by tenant, run and content; the prefix is as narrow as a grant can be."
)


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one of the AwsSolutions findings on a construct and all that is below it."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))


def acknowledge_objects(
    holder: Resource, bucket: s3.Bucket, prefix: str, reason: str = _OF_RUNS
) -> None:
    """Accept that a policy names all objects below a prefix.

    A finding's id holds the bucket's ARN as the template spells it: an attribute in the bucket's
    own stack, an import elsewhere.
    """
    here, there = Stack.of(holder), Stack.of(bucket)
    if here is there:
        resource = cast("s3.CfnBucket", bucket.node.default_child)
        arn = f"<{here.get_logical_id(resource)}.Arn>"
    else:
        arn = here.resolve(there.export_value(bucket.bucket_arn))["Fn::ImportValue"]
    acknowledge(
        holder,
        f"IAM5[Resource::{arn}/{prefix}*]",
        reason,
    )
