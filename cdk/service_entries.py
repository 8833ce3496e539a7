"""The services that can be called through the API: a work queue each, and what ends their dead."""

from collections.abc import Mapping
from typing import Final

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk.data_stack import DataStack
from cdk.event_sources import deliver_messages
from cdk.function import Entry, Function
from cdk.queue import Delivery, QueueWithDeadLetters, outlasting
from cdk.settings import StageSettings
from functions.adapters import settings as variables
from functions.core import keys

JOB_VISIBILITY: Final = Duration.minutes(2)
"""Workers extend it for as long as they work; so this is how late another one takes over."""
JOB_DELIVERIES: Final = 5
JOB_RETENTION: Final = Duration.days(8)
"""Longer than any deadline: a job that no worker took is read as late, and does not just vanish."""
DEAD_JOBS_TIMEOUT: Final = Duration.seconds(30)


class ServiceEntries(Construct):
    """Queues named after the stage's service entries; nothing at all when it has none."""

    def __init__(
        self, scope: Construct, settings: StageSettings, data: DataStack, code: lambda_.Code
    ) -> None:
        super().__init__(scope, "ServiceEntries")
        jobs = Delivery(
            JOB_VISIBILITY,
            deliveries=JOB_DELIVERIES,
            retention=JOB_RETENTION,
            dead_letters_visibility=outlasting(DEAD_JOBS_TIMEOUT),
        )
        self._queues = {
            name: QueueWithDeadLetters(self, name, settings, jobs)
            for name in settings.service_entries
        }
        if not self._queues:
            return
        function = self._add_dead_jobs(settings, data, code)
        policy = self._add_job_worker_access(settings)
        dead_letters = {name: each.dead_letters.queue_url for name, each in self._queues.items()}
        outputs = {
            "DeadJobsFunction": function.name,
            "ServiceEntryQueueUrls": self.queue_urls,
            "ServiceEntryDeadLetterUrls": self._json(dead_letters),
            "JobWorkerAccessPolicyArn": policy.managed_policy_arn,
        }
        for name, value in outputs.items():
            CfnOutput(scope, name, value=value)

    @property
    def queue_urls(self) -> str:
        """The URLs of the work queues by name, as a JSON object."""
        return self._json({name: each.queue.queue_url for name, each in self._queues.items()})

    def allow_sending(self, function: Function) -> None:
        """Let the function put jobs into every work queue."""
        for each in self._queues.values():
            function.allow("sqs:SendMessage", on=each.queue.queue_arn)

    def _add_dead_jobs(
        self, settings: StageSettings, data: DataStack, code: lambda_.Code
    ) -> Function:
        """What marks an invocation as failed once its job was given up."""
        dead_jobs = Function(
            self,
            "DeadJobs",
            settings,
            code,
            Entry(
                handler="functions.api.dead_jobs_handler.handle",
                timeout=DEAD_JOBS_TIMEOUT,
                memory_mb=256,
                environment={
                    variables.TABLE: data.table.table_name,
                    variables.BUCKET: data.bucket.bucket_name,
                },
            ),
        )
        dead_jobs.allow_items(data.table, keys.INVOCATION_PREFIX, "dynamodb:UpdateItem")
        dead_jobs.allow_objects(data.bucket, keys.DEAD_LETTERS, "s3:PutObject")
        for name, each in self._queues.items():
            deliver_messages(each.dead_letters, dead_jobs, f"DeadLettersOf-{name}")
        return dead_jobs

    def _add_job_worker_access(self, settings: StageSettings) -> iam.ManagedPolicy:
        """For the roles of a service's workers, together with WorkerAccess."""
        return iam.ManagedPolicy(
            self,
            "JobWorkerAccess",
            description=f"Work on invocations of runtally {settings.stage}",
            statements=[
                iam.PolicyStatement(
                    actions=[
                        "sqs:ReceiveMessage",
                        "sqs:DeleteMessage",
                        "sqs:ChangeMessageVisibility",
                    ],
                    resources=[each.queue.queue_arn for each in self._queues.values()],
                )
            ],
        )

    def _json(self, urls: Mapping[str, str]) -> str:
        return Stack.of(self).to_json_string(urls)
