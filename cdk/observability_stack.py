"""How a stage is watched: alarms and whom they tell, two dashboards, saved queries."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk.aws_cloudwatch_actions import SnsAction
from constructs import Construct

from cdk.alarms import watches
from cdk.api_stack import ApiStack
from cdk.coordination_alarms import cache_watches
from cdk.dashboards import business_dashboard, technical_dashboard
from cdk.lake_alarms import lake_watches
from cdk.pipeline_stack import PipelineStack
from cdk.queries import SAVED
from cdk.settings import StageSettings
from cdk.watched import Watched, watched_in


class ObservabilityStack(Stack):
    """Comes after all others, and watches all queues and functions that it finds in them.

    The embedded AWS has no alarms on computed metrics and no saved queries, and evaluates nothing.
    """

    def __init__(
        self,
        scope: Construct,
        settings: StageSettings,
        pipeline: PipelineStack,
        api: ApiStack,
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-observability",
            description=f"runtally {settings.stage}: alarms, dashboards, saved queries",
        )
        self._settings = settings
        stacks = [each for each in scope.node.children if isinstance(each, Stack)]
        watched = watched_in(stacks, pipeline.data.table)
        topic = self._add_topic()
        action = SnsAction(topic)
        for each in (
            *watches(settings, watched, api.http_api),
            *cache_watches(settings),
            *lake_watches(watched),
        ):
            alarm = cloudwatch.Alarm(
                self,
                each.name,
                metric=each.measure,
                alarm_description=each.description,
                threshold=each.above,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
                evaluation_periods=each.periods,
                datapoints_to_alarm=each.red,
                treat_missing_data=each.silence,
            )
            alarm.add_alarm_action(action)
        business_dashboard(self, settings, watched)
        technical_dashboard(self, settings, watched, api.http_api)
        self._save_queries(watched)
        CfnOutput(self, "AlarmTopicArn", value=topic.topic_arn)

    def _add_topic(self) -> sns.Topic:
        """Where alarms are told; subscribe to it, or name an address in the stage's settings.

        Without a key of its own: CloudWatch may not use the one that AWS manages for SNS, and one
        of ours is paid for by the month. Messages name an alarm and its figures, and no tenant.
        """
        topic = sns.Topic(self, "Alarms", enforce_ssl=True)
        # Any policy, such as the one that asks for TLS, replaces SNS's own, which would allow this.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": self.account}},
            )
        )
        if self._settings.alarm_email:
            topic.add_subscription(subscriptions.EmailSubscription(self._settings.alarm_email))
        return topic

    def _save_queries(self, watched: Watched) -> None:
        for each in SAVED:
            logs.CfnQueryDefinition(
                self,
                each.name.title().replace(" ", ""),
                name=f"{self._settings.prefix}/{each.name}",
                query_string=each.text,
                log_group_names=watched.log_groups(*each.services),
            )
