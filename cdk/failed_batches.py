"""Where stream batches end that summarize could not process, and how they become recounts."""

from typing import cast

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.bucket import private_bucket
from cdk.settings import StageSettings


def failed_batches_bucket(
    scope: Construct, settings: StageSettings, recounts: sqs.Queue
) -> s3.Bucket:
    """A bucket for nothing else, whose every new object is announced on the recount queue.

    The notification is set on the bucket itself: CDK's own way deploys one more Lambda function,
    only to set it. S3 announces the announcements, too, with a message `s3:TestEvent`.
    """
    bucket = private_bucket(
        scope, "FailedBatches", settings, expire_after=Duration.days(14), versioned=False
    )
    resource = cast("s3.CfnBucket", bucket.node.default_child)
    resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        queue_configurations=[
            s3.CfnBucket.QueueConfigurationProperty(
                event="s3:ObjectCreated:*", queue=recounts.queue_arn
            )
        ]
    )
    # S3 tries the queue when the bucket is made.
    resource.node.add_dependency(_let_s3_send(recounts))
    return bucket


def _let_s3_send(queue: sqs.Queue) -> Construct:
    """Any bucket of this account: naming ours would need its name before it exists."""
    added = queue.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal("s3.amazonaws.com")],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(queue).account}},
        )
    )
    return cast("Construct", added.policy_dependable)
