"""How every bucket is made."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.acknowledged import acknowledge
from cdk.settings import StageSettings


def private_bucket(  # noqa: PLR0913 - each by its name
    scope: Construct,
    name: str,
    settings: StageSettings,
    expire_after: Duration | None,
    *,
    versioned: bool,
    key: kms.IKey | None = None,
    lockable: bool = False,
    locked_for: Duration | None = None,
    tiers: Sequence[s3.Transition] = (),
) -> s3.Bucket:
    """An encrypted bucket that only the account's own roles reach, emptied as its objects age.

    Without `expire_after` they stay. `key` encrypts instead of S3's own. For `locked_for` after it
    was put, nobody at all can delete a version; that may be said later of a `lockable` bucket.
    """
    bucket = s3.Bucket(
        scope,
        name,
        versioned=versioned,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        # One request to KMS for many objects.
        bucket_key_enabled=True if key else None,
        object_lock_enabled=True if lockable else None,
        object_lock_default_retention=(
            s3.ObjectLockRetention.compliance(locked_for) if locked_for else None
        ),
        enforce_ssl=settings.tls_only,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        removal_policy=settings.removal_policy,
        lifecycle_rules=[
            s3.LifecycleRule(
                id="expire",
                expiration=expire_after,
                noncurrent_version_expiration=Duration.days(7) if versioned else None,
                abort_incomplete_multipart_upload_after=Duration.days(1),
                transitions=list(tiers) or None,
            ),
        ],
    )
    acknowledge(
        bucket,
        "S1",
        "Access logs would store a second object for every one stored; CloudTrail data events "
        "record access where a team needs it.",
    )
    return bucket
