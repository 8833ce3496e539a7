"""What the adapters of service entries promise (core.api_ports), on the fakes and on the embedded
AWS alike."""

import itertools
from dataclasses import replace
from urllib.request import urlopen

import pytest

from functions.adapters.dynamodb_invocations import DynamoDBInvocations
from functions.adapters.sqs import SqsJobQueues
from functions.core import caps, invocations, keys
from functions.core.errors import NotFound
from functions.core.invocations import Invocation, Settlement
from functions.core.keys import InvocationRef
from functions.core.times import SECOND
from runtally.wire import InvocationEnded
from tests.build import T0
from tests.contract.conftest import Services

pytestmark = pytest.mark.xdist_group("contract")

EXPIRES = T0 // SECOND + 86_400
_numbers = itertools.count(1)


@pytest.fixture
def store(services: Services) -> DynamoDBInvocations:
    return DynamoDBInvocations(services.table)


@pytest.fixture
def invocation() -> Invocation:
    """One that no other test has touched."""
    ref = InvocationRef("acme", f"i-{next(_numbers)}")
    return Invocation(ref, "research", T0, T0 + 60 * SECOND, "d", EXPIRES)


def answered(result: str = "done", at: int = T0 + 1, digest: str = "a") -> Settlement:
    event = InvocationEnded("i", "succeeded", result, "but slow")
    key = "invocations/k" if len(result.encode()) > caps.INVOCATION_RESULT else None
    return invocations.answered(event, digest, at, key)


def test_an_invocation_is_made_once(store: DynamoDBInvocations, invocation: Invocation) -> None:
    assert store.load_invocation(invocation.ref) is None
    assert store.create_invocation(invocation) == invocation
    assert store.load_invocation(invocation.ref) == invocation
    other = replace(invocation, created_at=EXPIRES * SECOND - 1, input_digest="e")
    assert store.create_invocation(other) == invocation
    assert store.load_invocation(invocation.ref) == invocation


def test_one_that_has_expired_gives_way_with_all_that_stood_on_it(
    store: DynamoDBInvocations, invocation: Invocation
) -> None:
    store.create_invocation(invocation)
    store.mark_sent(invocation.ref, T0)
    store.settle_invocation(invocation.ref, answered())
    other = replace(invocation, created_at=EXPIRES * SECOND, expires_at=EXPIRES + 9)
    assert store.create_invocation(other) == other
    assert store.load_invocation(invocation.ref) == other


def test_a_job_is_sent_when_it_was_first_marked_so(
    store: DynamoDBInvocations, invocation: Invocation
) -> None:
    store.mark_sent(invocation.ref, T0)
    assert store.load_invocation(invocation.ref) is None
    store.create_invocation(invocation)
    store.mark_sent(invocation.ref, T0 + 5)
    store.mark_sent(invocation.ref, T0 + 6)
    assert store.load_invocation(invocation.ref) == replace(invocation, sent_at=T0 + 5)


@pytest.mark.parametrize(
    "result", ["", "done", "你" * 100_000, "🎉" * 300_000, "\x00\uffff"], ids=len
)
def test_the_first_settlement_stands_and_is_what_every_other_is_told(
    store: DynamoDBInvocations, invocation: Invocation, result: str
) -> None:
    store.create_invocation(invocation)
    first = answered(result)
    settled = replace(invocation, settled=first)
    assert store.settle_invocation(invocation.ref, first) == (True, settled)
    assert store.settle_invocation(invocation.ref, first) == (False, settled)
    for other in (
        answered("other", digest="b"),
        invocations.unanswered(invocations.JOB_FAILED, "why", T0 + 2),
    ):
        assert store.settle_invocation(invocation.ref, other) == (False, settled)
    assert store.load_invocation(invocation.ref) == settled


def test_a_failure_stands_against_an_answer(
    store: DynamoDBInvocations, invocation: Invocation
) -> None:
    store.create_invocation(invocation)
    failed = invocations.unanswered(invocations.DEADLINE_PASSED, "late", T0 + 60 * SECOND)
    settled = replace(invocation, settled=failed)
    assert store.settle_invocation(invocation.ref, failed) == (True, settled)
    assert store.settle_invocation(invocation.ref, answered()) == (False, settled)


def test_nothing_settles_what_is_not_there_or_no_longer(
    store: DynamoDBInvocations, invocation: Invocation
) -> None:
    with pytest.raises(NotFound):
        store.settle_invocation(invocation.ref, answered())
    assert store.load_invocation(invocation.ref) is None
    store.create_invocation(invocation)
    with pytest.raises(NotFound):
        store.settle_invocation(invocation.ref, answered(at=EXPIRES * SECOND))
    assert store.load_invocation(invocation.ref) == invocation
    assert store.settle_invocation(invocation.ref, answered(at=EXPIRES * SECOND - 1))[0]
    with pytest.raises(NotFound):
        store.settle_invocation(invocation.ref, answered(at=EXPIRES * SECOND))


def test_an_invocation_costs_a_write_unit_for_each_step_of_its_way(
    services: Services, store: DynamoDBInvocations, invocation: Invocation
) -> None:
    services.table.take_consumption()
    store.create_invocation(invocation)
    store.mark_sent(invocation.ref, T0)
    store.settle_invocation(invocation.ref, answered())
    assert services.table.take_consumption() == {"WriteUnits": 3, "RefusedWrites": 0}


def test_a_result_is_put_once(services: Services) -> None:
    key = keys.result_object(InvocationRef("acme", "i"), f"{next(_numbers):016}")
    services.objects.put_whole_result(key, "长".encode())
    services.objects.put_whole_result(key, b"what only a collision of hashes would bring")
    found = services.s3.get_object(Bucket=services.bucket, Key=key)
    assert found["Body"].read() == "长".encode()


def test_a_link_brings_the_result_as_text(emulated: Services) -> None:
    key = keys.result_object(InvocationRef("acme", "i:1"), "a" * 64)
    emulated.objects.put_whole_result(key, "长".encode())
    with urlopen(emulated.objects.link_to_result(key, 900)) as answer:  # noqa: S310 - ours
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.read().decode() == "长"


def test_a_job_reaches_the_queue_of_its_service_entry(emulated: Services) -> None:
    queue_url = emulated.sqs.create_queue(QueueName="jobs")["QueueUrl"]
    queues = SqsJobQueues(emulated.sqs, {"research": queue_url})
    assert list(queues.names()) == ["research"]
    queues.send_job("research", "acme", '{"input":"你"}')
    answer = emulated.sqs.receive_message(
        QueueUrl=queue_url, MessageSystemAttributeNames=["MessageGroupId"]
    )
    (message,) = answer["Messages"]
    assert message["Body"] == '{"input":"你"}'
    assert message["Attributes"]["MessageGroupId"] == "acme"
