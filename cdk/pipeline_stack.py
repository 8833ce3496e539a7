"""From the event queue to the summary: queues, functions, and what each function may do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aws_cdk import CfnOutput, Duration, IStackSynthesizer, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk.acknowledged import acknowledge_objects
from cdk.data_stack import DataStack
from cdk.erase import add_erase, erasures_queue, quiet_s
from cdk.event_sources import deliver_messages, deliver_stream
from cdk.failed_batches import failed_batches_bucket
from cdk.function import Entry, Function
from cdk.lake_stack import LakeStack
from cdk.queue import Delivery, QueueWithDeadLetters, outlasting
from cdk.settings import StageSettings
from cdk.sweep import Reach, add_sweep, allow_events
from functions.adapters import settings as variables
from functions.core import keys

INGEST_TIMEOUT: Final = Duration.minutes(2)
"""Ten claimed bodies of 64 MB, one after the other, take about one."""
SUMMARIZE_TIMEOUT: Final = Duration.minutes(1)
RECOUNT_TIMEOUT: Final = Duration.minutes(5)

RECOUNT_DELAY: Final = Duration.seconds(5)
"""Long enough for a burst of late steps to cost one recount, short enough to wait for."""


class PipelineStack(Stack):
    """Everything between a worker's SendMessage and the items that readers read."""

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        scope: Construct,
        settings: StageSettings,
        synthesizer: IStackSynthesizer | None,
        data: DataStack,
        code: Path,
        *,
        lake: LakeStack | None,
    ) -> None:
        super().__init__(
            scope,
            f"{settings.prefix}-pipeline",
            description=f"runtally {settings.stage}: event queue, ingest, summarize, recount",
            synthesizer=synthesizer,
        )
        self._settings = settings
        self._code = lambda_.Code.from_asset(str(code))
        self.data = data
        self._lake = lake
        self._table = data.table
        self._bucket = data.bucket
        self._events = QueueWithDeadLetters(
            self, "Events", settings, Delivery(outlasting(INGEST_TIMEOUT))
        )
        self.event_queue = self._events.queue
        self._recounts = QueueWithDeadLetters(
            self, "Recounts", settings, Delivery(outlasting(RECOUNT_TIMEOUT), delay=RECOUNT_DELAY)
        )
        self._erasures = erasures_queue(self, settings)
        self.erasure_queue = self._erasures.queue
        self._failed_batches = failed_batches_bucket(self, settings, self._recounts.queue)
        self._add_outputs(
            {
                "IngestFunction": self._add_ingest().name,
                "SummarizeFunction": self._add_summarize().name,
                "RecountFunction": self._add_recount().name,
                "EraseFunction": self._add_erase().name,
                "SweepFunction": self._add_sweep().name,
                "WorkerAccessPolicyArn": self._add_worker_access().managed_policy_arn,
            }
        )

    def _add_ingest(self) -> Function:
        ingest = self._add_function(
            "Ingest",
            Entry(
                handler="functions.ingest.handler.handle",
                timeout=INGEST_TIMEOUT,
                memory_mb=1024,  # a claimed body of 64 MB, several times over
                environment={
                    variables.TABLE: self._table.table_name,
                    variables.BUCKET: self._bucket.bucket_name,
                    variables.DEAD_LETTER_QUEUE_URL: self._events.dead_letters.queue_url,
                    variables.RETENTION_DAYS: str(self._settings.retention_days),
                    variables.ERASURE_QUEUE_URL: self.erasure_queue.queue_url,
                },
            ),
        )
        ingest.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            on=self._table.table_arn,
        )
        ingest.allow_objects(self._bucket, keys.RUN_OBJECTS, "s3:PutObject", "s3:GetObject")
        ingest.allow_objects(self._bucket, keys.INVOCATION_OBJECTS, "s3:PutObject")
        ingest.allow_objects(self._bucket, keys.INBOX, "s3:GetObject")
        ingest.allow_objects(self._bucket, keys.DEAD_LETTERS, "s3:PutObject", "s3:GetObject")
        # Without it S3 answers AccessDenied, not NoSuchKey, for a claim whose object is missing.
        ingest.allow("s3:ListBucket", on=self._bucket.bucket_arn)
        ingest.allow("sqs:SendMessage", on=self._events.dead_letters.queue_arn)
        ingest.allow("sqs:SendMessage", on=self.erasure_queue.queue_arn)
        # More would only wait for one partition, each with messages that then come again.
        deliver_messages(self._events.queue, ingest, max_concurrency=self._settings.ingest_at_once)
        return ingest

    def _add_summarize(self) -> Function:
        summarize = self._add_function(
            "Summarize",
            Entry(
                handler="functions.summarize.handler.handle",
                timeout=SUMMARIZE_TIMEOUT,
                memory_mb=512,
                environment={
                    variables.TABLE: self._table.table_name,
                    variables.RECOUNT_QUEUE_URL: self._recounts.queue.queue_url,
                },
            ),
        )
        self._allow_counting(summarize)
        summarize.allow("sqs:SendMessage", on=self._recounts.queue.queue_arn)
        allow_events(summarize)
        deliver_stream(self._table, summarize, self._failed_batches)
        return summarize

    def _add_recount(self) -> Function:
        recount = self._add_function(
            "Recount",
            Entry(
                handler="functions.summarize.recount_handler.handle",
                timeout=RECOUNT_TIMEOUT,
                memory_mb=1024,
                environment={
                    variables.TABLE: self._table.table_name,
                    variables.FAILED_BATCHES_BUCKET: self._failed_batches.bucket_name,
                },
            ),
        )
        self._allow_counting(recount)
        recount.allow_objects(self._failed_batches, "", "s3:GetObject")
        allow_events(recount)
        deliver_messages(self._recounts.queue, recount)
        return recount

    def _add_sweep(self) -> Function:
        reach = Reach(self._table, recounts=self._recounts.queue, erasures=self.erasure_queue)
        return add_sweep(self, self._settings, self._code, reach)

    def _add_erase(self) -> Function:
        return add_erase(
            self, self._settings, self._code, self.data, self.erasure_queue, lake=self._lake
        )

    def _allow_counting(self, function: Function) -> None:
        function.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            on=self._table.table_arn,
        )

    def _add_function(self, name: str, entry: Entry) -> Function:
        return Function(self, name, self._settings, self._code, entry)

    def _add_worker_access(self) -> iam.ManagedPolicy:
        """For the roles of a team's workers: all that the SDK needs to record."""
        policy = iam.ManagedPolicy(
            self,
            "WorkerAccess",
            description=f"Record runs with runtally {self._settings.stage}",
            statements=[
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"], resources=[self._events.queue.queue_arn]
                ),
                iam.PolicyStatement(
                    actions=["s3:PutObject"],
                    resources=[self._bucket.arn_for_objects(f"{keys.INBOX}*")],
                ),
            ],
        )
        acknowledge_objects(policy, self._bucket, keys.INBOX)
        return policy

    def _add_outputs(self, of_functions: Mapping[str, str]) -> None:
        """What workers and the command line read from the deployed stack, by these names."""
        outputs = {
            "Stage": self._settings.stage,
            "RetentionDays": str(self._settings.retention_days),
            "QuietS": quiet_s(self._settings),
            "EventQueueUrl": self._events.queue.queue_url,
            "EventQueueDeadLetterUrl": self._events.dead_letters.queue_url,
            "RecountQueueUrl": self._recounts.queue.queue_url,
            "RecountDeadLetterUrl": self._recounts.dead_letters.queue_url,
            "ErasureQueueUrl": self.erasure_queue.queue_url,
            "ErasureDeadLetterUrl": self._erasures.dead_letters.queue_url,
            **of_functions,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)
