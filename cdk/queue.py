"""A queue and the dead-letter queue behind it."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.settings import StageSettings

EVENT_RETENTION: Final = Duration.days(4)
DEAD_LETTER_RETENTION: Final = Duration.days(14)
"""SQS's longest. A dead letter keeps the time at which it was first sent: that leaves ten days, at
least, to look at it."""

DELIVERIES: Final = 6
"""Until a message becomes a dead letter. Throttled invocations count, too: fewer lose good ones."""

VISIBILITY_FACTOR: Final = 6
"""Function timeouts, as AWS advises: no message may reappear while its batch is retried."""


def outlasting(function_timeout: Duration) -> Duration:
    """How long a message must stay invisible that a function with this timeout receives."""
    return Duration.seconds(VISIBILITY_FACTOR * function_timeout.to_seconds())


@dataclass(frozen=True, slots=True)
class Delivery:
    """How long a received message is invisible, how often it is tried, how long it is kept, how
    late it first shows.

    `dead_letters_visibility` is for queues whose dead letters a function receives.
    """

    visibility: Duration
    deliveries: int = DELIVERIES
    retention: Duration = EVENT_RETENTION
    delay: Duration | None = None
    dead_letters_visibility: Duration | None = None


class QueueWithDeadLetters(Construct):
    """A standard queue; what cannot be delivered is kept aside."""

    def __init__(
        self, scope: Construct, name: str, settings: StageSettings, delivery: Delivery
    ) -> None:
        super().__init__(scope, name)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=settings.tls_only,
            retention_period=DEAD_LETTER_RETENTION,
            visibility_timeout=delivery.dead_letters_visibility,
            removal_policy=settings.removal_policy,
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=settings.tls_only,
            retention_period=delivery.retention,
            visibility_timeout=delivery.visibility,
            delivery_delay=delivery.delay,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=delivery.deliveries
            ),
            removal_policy=settings.removal_policy,
        )
