"""What there is to watch in the stacks of a stage, found by construct: nobody has to list it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs

_HANDLERS: Final = {
    "functions.ingest.handler.handle": "ingest",
    "functions.summarize.handler.handle": "summarize",
    "functions.summarize.recount_handler.handle": "recount",
    "functions.api.handler.handle": "api",
    "functions.api.dead_jobs_handler.handle": "dead_jobs",
    "functions.sweep.handler.handle": "sweep",
    "functions.erase.handler.handle": "erase",
    "functions.lake.handler.handle": "lake",
}
"""The name under which each function publishes its metrics. CDK's own functions are not watched."""

_SQS_VISIBILITY_S: Final = 30


@dataclass(frozen=True, slots=True)
class WatchedQueue:
    """`dead`: what nobody could process ends here. `drained`: one of our functions receives."""

    name: str
    queue: sqs.Queue
    dead: bool
    drained: bool


@dataclass(frozen=True, slots=True)
class WatchedFunction:
    """`comes_again`: what crashed the function is tried anew so much later, at the latest."""

    service: str
    function: lambda_.Function
    log_group: logs.ILogGroup
    reads_stream: bool
    comes_again: Duration


@dataclass(frozen=True, slots=True)
class Watched:
    queues: Sequence[WatchedQueue]
    functions: Sequence[WatchedFunction]
    table: dynamodb.TableV2

    @property
    def live_queues(self) -> list[WatchedQueue]:
        return [each for each in self.queues if not each.dead]

    @property
    def dead_letters(self) -> list[WatchedQueue]:
        return [each for each in self.queues if each.dead]

    def function(self, service: str) -> lambda_.Function | None:
        """None in a stage that has none."""
        found = (each.function for each in self.functions if each.service == service)
        return next(found, None)

    def log_groups(self, *services: str) -> list[str]:
        """Names of the log groups of these functions, of all without any."""
        return [
            each.log_group.log_group_name
            for each in self.functions
            if not services or each.service in services
        ]


def watched_in(stacks: Sequence[Stack], table: dynamodb.TableV2) -> Watched:
    """Raises KeyError for a function of ours that has no name here."""
    queues = [queue for stack in stacks for queue in _queues(stack)]
    functions = [function for stack in stacks for function in _functions(stack)]
    return Watched(queues, functions, table)


def _queues(stack: Stack) -> Iterator[WatchedQueue]:
    sources = [stack.resolve(mapping.event_source_arn) for mapping in _mappings(stack)]
    for construct in stack.node.find_all():
        if isinstance(construct, sqs.Queue):
            name = construct.node.path.partition("/")[2].removesuffix("/Queue")
            yield WatchedQueue(
                name,
                construct,
                dead=construct.dead_letter_queue is None,
                drained=stack.resolve(construct.queue_arn) in sources,
            )


def _functions(stack: Stack) -> Iterator[WatchedFunction]:
    readers = [
        stack.resolve(mapping.function_name)
        for mapping in _mappings(stack)
        if mapping.starting_position
    ]
    for construct in stack.node.find_all():
        if isinstance(construct, lambda_.Function):
            resource = construct.node.default_child
            handler = resource.handler if isinstance(resource, lambda_.CfnFunction) else None
            if handler and handler.startswith("functions."):
                yield WatchedFunction(
                    _HANDLERS[handler],
                    construct,
                    construct.log_group,
                    reads_stream=stack.resolve(construct.function_name) in readers,
                    comes_again=_redelivery(stack, construct),
                )


def _redelivery(stack: Stack, function: lambda_.Function) -> Duration:
    """The longest visibility timeout among the queues that the function receives from; a stream's
    reader goes on at once."""
    name = stack.resolve(function.function_name)
    sources = [
        stack.resolve(mapping.event_source_arn)
        for mapping in _mappings(stack)
        if stack.resolve(mapping.function_name) == name
    ]
    seconds = [
        resource.visibility_timeout or _SQS_VISIBILITY_S
        for construct in stack.node.find_all()
        if isinstance(construct, sqs.Queue) and stack.resolve(construct.queue_arn) in sources
        if isinstance(resource := construct.node.default_child, sqs.CfnQueue)
    ]
    return Duration.seconds(max(seconds, default=0))


def _mappings(stack: Stack) -> list[lambda_.CfnEventSourceMapping]:
    found = stack.node.find_all()
    return [each for each in found if isinstance(each, lambda_.CfnEventSourceMapping)]
