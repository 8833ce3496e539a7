"""What workers of a run share while it runs, and may lose: a cache of Valkey, and the way to it."""

from typing import Final

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticache as elasticache
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.coordination_access import ACCESS_STRING
from cdk.settings import CoordinationSettings, StageSettings

PORT: Final = 6379
REPLICAS_PORT: Final = 6380
"""Of the same host, for reads that may be a moment old:
https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/RedisConfiguration.html"""


def cache_name(settings: StageSettings) -> str:
    """Known before there is one: metrics go by it, and passwords are made for it."""
    return f"{settings.prefix}-coordination"


class CoordinationStack(Stack):
    """ElastiCache Serverless, in the caller's VPC, for workers that hold a policy and a group.

    Nothing in it is to be kept: no snapshots, and it goes with its stack. ElastiCache wants names
    for all of it, so that no second cache can take the first one's place: before another VPC or
    other subnets are set, the stack is to be deleted.
    """

    def __init__(
        self, scope: Construct, settings: StageSettings, coordination: CoordinationSettings
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-coordination",
            description=f"runtally {settings.stage}: a cache that workers share",
        )
        around = self._add_cache_group(coordination)
        workers = self._add_worker_group(coordination, around)
        user = self._add_user(settings)
        cache = self._add_cache(settings, coordination, around, user)
        policy = self._add_access(settings, cache, user)
        outputs = {
            "CoordinationUrl": f"valkeys://{cache.attr_endpoint_address}:{PORT}",
            "CoordinationCache": cache.ref,
            "CoordinationUser": user.ref,
            "CoordinationSecurityGroup": workers.attr_group_id,
            "CoordinationAccessPolicyArn": policy.managed_policy_arn,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)

    def _add_cache_group(self, coordination: CoordinationSettings) -> ec2.SecurityGroup:
        # CDK wants zones, though groups have none: those that it takes for any account's.
        vpc = ec2.Vpc.from_vpc_attributes(
            self, "Vpc", vpc_id=coordination.vpc_id, availability_zones=self.availability_zones
        )
        return ec2.SecurityGroup(
            self,
            "CacheSecurityGroup",
            vpc=vpc,
            description="Around the coordination cache",
            allow_all_outbound=False,
        )

    def _add_worker_group(
        self, coordination: CoordinationSettings, around: ec2.SecurityGroup
    ) -> ec2.CfnSecurityGroup:
        """Lets its holders reach the cache, and nothing else: they carry other groups, too."""
        workers = ec2.CfnSecurityGroup(
            self,
            "WorkerSecurityGroup",
            group_description="May reach the coordination cache",
            vpc_id=coordination.vpc_id,
            # Embedded, as CDK's would not be: a group that has none of these lets everything out.
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    description="To the cache",
                    ip_protocol="tcp",
                    from_port=port,
                    to_port=port,
                    destination_security_group_id=around.security_group_id,
                )
                for port in (PORT, REPLICAS_PORT)
            ],
        )
        for port in (PORT, REPLICAS_PORT):
            ec2.CfnSecurityGroupIngress(
                self,
                f"FromWorkers{port}",
                description="From workers",
                group_id=around.security_group_id,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
                source_security_group_id=workers.attr_group_id,
            )
        return workers

    def _add_user(self, settings: StageSettings) -> elasticache.CfnUser:
        name = f"{settings.prefix}-worker"
        return elasticache.CfnUser(
            self,
            "Worker",
            engine="valkey",
            user_id=name,
            user_name=name,  # the same, as ElastiCache asks of users that sign in by IAM
            authentication_mode={"Type": "iam"},
            access_string=ACCESS_STRING,
        )

    def _add_cache(
        self,
        settings: StageSettings,
        coordination: CoordinationSettings,
        around: ec2.SecurityGroup,
        user: elasticache.CfnUser,
    ) -> elasticache.CfnServerlessCache:
        """Speaks TLS alone, as every serverless cache does. At rest, a key of AWS's own encrypts
        it: one of ours is paid for by the month."""
        group = elasticache.CfnUserGroup(
            self,
            "Workers",
            engine="valkey",
            user_group_id=f"{settings.prefix}-workers",
            user_ids=[user.ref],
        )
        return elasticache.CfnServerlessCache(
            self,
            "Cache",
            engine="valkey",
            major_engine_version="8",
            serverless_cache_name=cache_name(settings),
            description=f"What workers of runtally {settings.stage} share",
            cache_usage_limits=_limits(coordination),
            security_group_ids=[around.security_group_id],
            subnet_ids=list(coordination.subnet_ids),
            user_group_id=group.ref,
        )

    def _add_access(
        self,
        settings: StageSettings,
        cache: elasticache.CfnServerlessCache,
        user: elasticache.CfnUser,
    ) -> iam.ManagedPolicy:
        """For the roles of workers: the right to sign in, which is asked for on both at once."""
        return iam.ManagedPolicy(
            self,
            "CoordinationAccess",
            description=f"Sign in to the coordination cache of runtally {settings.stage}",
            statements=[
                iam.PolicyStatement(
                    actions=["elasticache:Connect"], resources=[cache.attr_arn, user.attr_arn]
                )
            ],
        )


def _limits(
    coordination: CoordinationSettings,
) -> elasticache.CfnServerlessCache.CacheUsageLimitsProperty:
    cache = elasticache.CfnServerlessCache
    return cache.CacheUsageLimitsProperty(
        data_storage=cache.DataStorageProperty(maximum=coordination.max_gb, unit="GB"),
        ecpu_per_second=cache.ECPUPerSecondProperty(maximum=coordination.max_ecpu_per_second),
    )
