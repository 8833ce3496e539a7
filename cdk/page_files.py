"""Bringing the files of the page into their bucket, when the stack is deployed."""

from pathlib import Path
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct

from cdk.acknowledged import acknowledge, acknowledge_objects
from cdk.settings import StageSettings

_HASHED: Final = "assets/*"
"""Their names change with their content: whoever has one never asks for it again."""

_PAGE: Final = "/index.html"


class PageFiles(Construct):
    """The files, and the one role that may write them."""

    def __init__(
        self,
        scope: Construct,
        settings: StageSettings,
        page: Path,
        bucket: s3.Bucket,
        distribution: cloudfront.Distribution,
    ) -> None:
        super().__init__(scope, "PageFiles")
        self._bucket = bucket
        self._distribution = distribution
        self._zip = s3_assets.Asset(self, "Zip", path=str(page))
        self._logs = logs.LogGroup(
            self,
            "Logs",
            retention=settings.log_retention,
            removal_policy=settings.removal_policy,
        )
        self._role = self._add_role()
        hashed = self._add_deployment(
            "Hashed",
            [
                s3_deployment.CacheControl.set_public(),
                s3_deployment.CacheControl.max_age(Duration.days(365)),
                s3_deployment.CacheControl.immutable(),
            ],
            exclude=["*"],
            include=[_HASHED],
        )
        others = self._add_deployment(
            "Others",
            [s3_deployment.CacheControl.no_cache()],
            exclude=[_HASHED],
            invalidate=[_PAGE],
        )
        # A page never names a file that is not there yet.
        others.node.add_dependency(hashed)
        acknowledge(
            Stack.of(self), "L1", "CDK chooses the runtime of its own function, with each release."
        )

    def _add_role(self) -> iam.Role:
        """Not the one that CDK would make, which may do more: delete, and invalidate anything."""
        stack = Stack.of(self)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self._logs.grant_write(role)
        distribution = f"distribution/{self._distribution.distribution_id}"
        for action, on in (
            # Not this zip alone: a new one's name would reach IAM too late for its deployment.
            ("s3:GetObject", self._zip.bucket.arn_for_objects("*")),
            ("s3:ListBucket", self._bucket.bucket_arn),
            ("s3:PutObject", self._bucket.arn_for_objects("*")),
            (
                "cloudfront:CreateInvalidation",
                stack.format_arn(service="cloudfront", region="", resource=distribution),
            ),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[on]))
        reason = "The bucket holds the page and nothing else; file names are made by each build."
        acknowledge_objects(role, self._bucket, "", reason)
        _acknowledge_assets(role, self._zip.bucket)
        return role

    def _add_deployment(
        self,
        name: str,
        cache_control: list[s3_deployment.CacheControl],
        *,
        exclude: list[str],
        include: list[str] | None = None,
        invalidate: list[str] | None = None,
    ) -> s3_deployment.BucketDeployment:
        return s3_deployment.BucketDeployment(
            self,
            name,
            sources=[s3_deployment.Source.bucket(self._zip.bucket, self._zip.s3_object_key)],
            destination_bucket=self._bucket,
            cache_control=cache_control,
            exclude=exclude,
            include=include,
            # What an earlier page loads when it is needed stays, for tabs that are still open with
            # it. Nothing removes it later either, since by its age it cannot be told from what is
            # in use: a megabyte for every version of the page that was ever deployed.
            prune=False,
            distribution=self._distribution if invalidate else None,
            distribution_paths=invalidate,
            # An edge keeps what is `no-cache` for a second; no deployment has to wait for that.
            wait_for_distribution_invalidation=False,
            log_group=self._logs,
            role=self._role.without_policy_updates(),
        )


def _acknowledge_assets(role: iam.Role, assets: s3.IBucket) -> None:
    """A finding's id holds the bucket's name as CDK's bootstrap made it, parameters in <>."""
    name: str = Stack.of(role).resolve(assets.bucket_name)["Fn::Sub"]
    name = name.replace("${", "<").replace("}", ">")
    acknowledge(
        role,
        f"IAM5[Resource::arn:<AWS::Partition>:s3:::{name}/*]",
        "CDK's bucket of what is deployed; only reading.",
    )
