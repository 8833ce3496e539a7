"""A worker on the fake queue and on the embedded one: what it sees of SQS is the same."""

import time

import msgspec
import pytest

from runtally import JobWorker, Received, wire
from runtally.job import Job, seal_job
from tests.contract.conftest import Services
from tests.fakes.sqs import MemorySQS

YEAR_2100_NS = 4_102_444_800 * 10**9


@pytest.fixture
def queues(services: Services) -> tuple[str, str]:
    """The work queue and the event queue of this test alone."""
    names = [f"{kind}-{time.time_ns()}" for kind in ("jobs", "events")]
    if isinstance(services.sqs, MemorySQS):
        return names[0], names[1]
    jobs, events = (services.sqs.create_queue(QueueName=name)["QueueUrl"] for name in names)
    return jobs, events


@pytest.fixture
def worker(services: Services, queues: tuple[str, str]) -> JobWorker:
    jobs, events = queues
    return JobWorker(
        job_queue_url=jobs,
        queue_url=events,
        bucket=services.bucket,
        sqs=services.sqs,
        s3=services.s3,
    )


def invoke(services: Services, queues: tuple[str, str], text: bytes) -> None:
    job = Job(1, "acme", "research", "i-1", YEAR_2100_NS, msgspec.Raw(text))
    services.sqs.send_message(QueueUrl=queues[0], MessageBody=seal_job(job))


def received_by(worker: JobWorker) -> Received:
    received = worker.receive(1)
    assert received is not None
    return received


def test_an_answer_takes_the_job_off_its_queue(
    services: Services, queues: tuple[str, str], worker: JobWorker
) -> None:
    invoke(services, queues, '["\ufffe日本",9007199254740993]'.encode())
    received = received_by(worker)
    assert worker.receive(0) is None
    with received as job:
        assert job.input == ["\ufffe日本", 9007199254740993]
        job.succeed(job.input)
    answer = services.sqs.receive_message(QueueUrl=queues[1], VisibilityTimeout=60)
    (message,) = answer["Messages"]
    (line,) = wire.open_message(message["Body"]).lines
    ended = wire.InvocationEnded("i-1", "succeeded", '["\ufffe日本",9007199254740993]')
    assert wire.decode_event(line, "") == ended
    received._lease.release(0)
    assert worker.receive(0) is None


def test_a_job_that_is_released_comes_again_and_is_counted(
    services: Services, queues: tuple[str, str], worker: JobWorker
) -> None:
    invoke(services, queues, b"1")
    early = received_by(worker)
    early._lease.release(0)
    early._lease.release(0)
    late = received_by(worker)
    assert (early._lease.receives, late._lease.receives) == (1, 2)
    early._lease.delete()
    late._lease.release(0)
    received_by(worker)._lease.delete()
    assert worker.receive(0) is None
