"""How far the stage is with what was sent to it."""

from local.stage import Stage


def dead_letters(stage: Stage) -> int:
    """Messages that were refused or failed too often, of the event queue and the recount queue."""
    queues = (stage.event_queue_dead_letter_url, stage.recount_dead_letter_url)
    return sum(length(stage, queue) for queue in queues)


def unfinished(stage: Stage) -> int:
    """Messages that are not done with: waiting, delayed, or being worked on."""
    return sum(length(stage, queue) for queue in (stage.event_queue_url, stage.recount_queue_url))


def length(stage: Stage, queue_url: str) -> int:
    """Messages of one queue: waiting, delayed, or being worked on; SQS counts approximately."""
    answer = stage.sqs.get_queue_attributes(
        QueueUrl=queue_url,
        AttributeNames=[
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ],
    )
    return sum(int(number) for number in answer["Attributes"].values())
