"""A queue and the dead-letter queue behind it."""

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.settings import StageSettings

RETENTION: Final = Duration.days(4)
DEAD_LETTER_RETENTION: Final = Duration.days(14)
"""SQS's longest. A dead letter keeps the time at which it was first sent: that leaves ten days, at
least, to look at it."""

DELIVERIES: Final = 6
"""Until a message becomes a dead letter. Throttled invocations count, too: fewer lose good ones."""

VISIBILITY_FACTOR: Final = 6
"""Function timeouts, as AWS advises: no message may reappear while its batch is retried."""


class QueueWithDeadLetters(Construct):
    """A standard queue for a function with this timeout; what cannot be delivered is kept aside."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: StageSettings,
        function_timeout: Duration,
        delay: Duration | None = None,
    ) -> None:
        super().__init__(scope, name)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=settings.tls_only,
            retention_period=DEAD_LETTER_RETENTION,
            removal_policy=settings.removal_policy,
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=settings.tls_only,
            retention_period=RETENTION,
            visibility_timeout=Duration.seconds(VISIBILITY_FACTOR * function_timeout.to_seconds()),
            delivery_delay=delay,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=DELIVERIES
            ),
            removal_policy=settings.removal_policy,
        )
