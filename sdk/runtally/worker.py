"""The worker's side of a service entry: receive a job, hold it while it is done, answer it.

The answer leaves before the job is taken off its queue, and the first answer to an invocation
counts. So a job is done at least once, whoever dies; done twice it costs twice, and harms nothing.
"""

import functools
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import boto3
import msgspec
from botocore.config import Config

from runtally import environment, fields, lease, oversize, wire
from runtally.cuts import Cut
from runtally.job import Job, open_job
from runtally.lease import Clock, Lease
from runtally.senders import SqsSender

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient
    from typing_extensions import Self

    from runtally.redaction import Redact, Redactor

_log = logging.getLogger("runtally")

_LONGEST_POLL_S: Final = 20
_FIRST_RETURN_S: Final = 10
_LAST_RETURN_S: Final = 600
_LONGEST_PAUSE_S: Final = 60
_CLOCK: Final = Clock()
_CONFIG: Final = Config(
    retries={"mode": "standard", "total_max_attempts": 3},
    connect_timeout=3,
    read_timeout=_LONGEST_POLL_S + 10,
    tcp_keepalive=True,
    user_agent_extra="runtally",
)


class JobFailed(Exception):  # noqa: N818 - the fact
    """Raised by a handler that `serve` calls: the invocation failed, and trying again is useless.
    Its text is the error that the client reads.
    """


class AnswerNotSent(Exception):  # noqa: N818 - the fact
    """An answer did not reach the queue. The job is not done: it comes again."""


class Received:
    """A job to be done within `with`, which keeps it from other workers, and answered there once.

    An exception that leaves the block goes on untouched, and the job comes again: after 10 seconds,
    then 40, 160 and at most 600. So does it when the process dies, after two minutes.
    """

    def __init__(
        self, job: Job, held: Lease, send: Callable[[wire.InvocationEnded], None], clock: Clock
    ) -> None:
        self.tenant_id = job.tenant_id
        self.service_entry = job.service_entry
        self.invocation_id = job.invocation_id
        self.deadline_at = job.deadline_at
        """Nanoseconds since the epoch. An answer that comes later is too late."""
        self._input = job.input
        self._lease = held
        self._send = send
        self._clock = clock
        self._answered = False

    @functools.cached_property
    def input(self) -> Any:
        """What the client sent, decoded; integers are exact, also past those of a float."""
        return msgspec.json.decode(self._input)

    def remaining_s(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, (self.deadline_at - self._clock.now_ns()) / 1e9)

    def succeed(self, result: object) -> None:
        """Answer with a result: text as it is; anything else is JSON-encoded.

        Returns when the answer is on its queue. Raises AnswerNotSent when it cannot be brought
        there, RuntimeError when the job is answered already.
        """
        self._answer("succeeded", result)

    def fail(self, error: object, result: object = None) -> None:
        """Answer that the invocation failed, and why. Raises as `succeed` does."""
        self._answer("failed", result, fields.text(error))

    def _answer(self, status: wire.Status, result: object, error: str | None = None) -> None:
        if self._answered:
            raise RuntimeError(f"invocation {self.invocation_id} is answered already")
        text = fields.result_text(result)
        self._send(wire.InvocationEnded(self.invocation_id, status, text, error))
        self._answered = True
        self._lease.delete()

    def __enter__(self) -> "Self":
        self._lease.hold()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._answered:
            return
        self._lease.release(min(_LAST_RETURN_S, _FIRST_RETURN_S * 4 ** (self._lease.receives - 1)))
        if error is None:
            raise RuntimeError(
                f"invocation {self.invocation_id} is left without an answer: succeed or fail"
            )


class JobWorker:
    """Receives the jobs of one service entry and answers them on the event queue, through the
    bucket when an answer is too large for SQS. Results and errors go through `redact` first.

    Thread-safe; to be made in the process that uses it, after a fork.
    """

    def __init__(  # noqa: PLR0913 - one keyword a setting
        self,
        *,
        job_queue_url: str,
        queue_url: str,
        bucket: str | None = None,
        region: str | None = None,
        sqs: "SQSClient | None" = None,
        s3: "S3Client | None" = None,
        clock: Clock = _CLOCK,
        redact: "Redact | None" = None,
    ) -> None:
        session = boto3.Session(region_name=region)  # boto3's own is for one thread
        if bucket and s3 is None:
            s3 = session.client("s3", config=_CONFIG)
        self._sqs = sqs or session.client("sqs", config=_CONFIG)
        self._sender = SqsSender(queue_url, bucket, sqs=self._sqs, s3=s3)
        self._job_queue_url = job_queue_url
        self._clock = clock
        self._redactor = _redactor(redact)

    @classmethod
    def from_environment(cls) -> "Self":
        """Settings from RUNTALLY_JOB_QUEUE_URL, RUNTALLY_QUEUE_URL and, optional, RUNTALLY_BUCKET
        and RUNTALLY_REDACT. Raises ValueError that names what is missing."""
        names = ("RUNTALLY_JOB_QUEUE_URL", "RUNTALLY_QUEUE_URL")
        job_queue_url, queue_url = environment.required(*names)
        bucket = environment.optional("RUNTALLY_BUCKET")
        return cls(
            job_queue_url=job_queue_url,
            queue_url=queue_url,
            bucket=bucket,
            redact=environment.redact(),
        )

    def receive(self, wait_s: int = _LONGEST_POLL_S) -> Received | None:
        """The next job, or None when none comes within `wait_s` seconds (at most 20).

        Passes over what is not to be done: a job past its deadline is deleted, a message that is no
        job is left to its dead-letter queue. Raises what boto3 raises.
        """
        while True:
            answer = self._sqs.receive_message(
                QueueUrl=self._job_queue_url,
                MaxNumberOfMessages=1,
                WaitTimeSeconds=wait_s,
                VisibilityTimeout=lease.VISIBILITY_S,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
            if not (messages := answer.get("Messages")):
                return None
            (message,) = messages
            held = Lease(self._sqs, self._job_queue_url, message, self._clock)
            if received := self._opened(message["Body"], held):
                return received

    def serve(
        self, handler: Callable[[Received], object], stop: threading.Event | None = None
    ) -> None:
        """Do job after job until `stop` is set: what the handler returns is the result.

        JobFailed answers the invocation as failed. Any other exception of the handler's is logged,
        and the job comes again. Setting `stop` lets the job at hand be done; an idle worker returns
        within 20 seconds.
        """
        stop = stop or threading.Event()
        failures = 0
        while not stop.is_set():
            try:
                received = self.receive()
                failures = 0
            except Exception:  # noqa: BLE001 - botocore's many ways to say "not now"
                _log.exception("runtally: no job can be received")
                failures += 1
                self._clock.wait(stop, min(_LONGEST_PAUSE_S, 2**failures))
                continue
            if received is None:
                continue
            if stop.is_set():  # while it waited: another worker may have the job at once
                received._lease.release(0)
                return
            _do(received, handler)

    def _opened(self, body: str, held: Lease) -> Received | None:
        try:
            job = open_job(body)
        except wire.Rejected as rejected:
            _log.error("runtally: message %s is no job: %s", held.message_id, rejected)
            return None
        if job.deadline_at <= self._clock.now_ns():
            _log.warning("runtally: invocation %s is past its deadline", job.invocation_id)
            held.delete()
            return None
        return Received(job, held, functools.partial(self._send, job.tenant_id), self._clock)

    def _send(self, tenant_id: str, ended: wire.InvocationEnded) -> None:
        if self._redactor is not None:
            ended = self._redactor.event(ended)
        line = oversize.line_within(ended, self._sender.limit_bytes)
        if line != wire.encode_event(ended):
            _log.warning("runtally: the answer to %s is shortened", ended.invocation_id)
        sealed = Cut(wire.Head(1, tenant_id), [line]).seal()
        for _ in lease.tries(self._clock):
            delivery = self._sender.send([sealed])
            if delivery.refused:
                raise AnswerNotSent(f"{ended.invocation_id}: refused, {delivery.refused[0][1]}")
            if not delivery.unsent:
                return
        raise AnswerNotSent(f"{ended.invocation_id}: the queue or the bucket is out of reach")


def _redactor(redact: "Redact | None") -> "Redactor | None":
    if redact is None:
        return None
    from runtally.redaction import Redactor  # noqa: PLC0415 - for those who want it

    return Redactor(redact)


def _do(received: Received, handler: Callable[[Received], object]) -> None:
    try:
        with received as job:
            try:
                result = handler(job)
            except JobFailed as failed:
                job.fail(failed)
            else:
                job.succeed(result)
    except Exception:  # noqa: BLE001 - one job never ends the loop
        _log.exception("runtally: the work on invocation %s failed", received.invocation_id)
