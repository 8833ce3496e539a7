"""The partition model of `python -m benchmarks hot`: what it throttles, and what it must not."""

import random

import pytest
from botocore.exceptions import ClientError

from benchmarks.hot.delivery import PolledQueue, Redelivery
from benchmarks.hot.partitions import (
    ATTEMPTS,
    WRITES_A_SECOND,
    Allowance,
    Cpu,
    HotClient,
    HotTable,
    Partitions,
    Retries,
)
from benchmarks.hot.virtual_time import Pool, VirtualTime
from functions.adapters.clients import Patience

KEY = "PIPELINERUN#acme#run-1"


class Writer:
    """Puts items at a steady rate, each on its own, and counts those refused for good."""

    def __init__(self, *, patient: bool = True) -> None:
        self.time = VirtualTime()
        self.partitions = Partitions()
        self.table = HotTable(lambda key, record: None)
        self.refused: list[str] = []
        patience = Patience(now=lambda: self.time.now) if patient else None
        if patience:
            patience.begin(120_000)
        retries = Retries(random.Random(1), patience)  # noqa: S311 - jitter
        cpu = Cpu(self.time, 0)
        self.client = HotClient(self.time, self.table, self.partitions, cpu, retries)

    def put(self, a_second: int, seconds: int, keys: int = 1) -> None:
        for number in range(a_second * seconds):
            self.time.spawn(
                lambda number=number: self._put(f"{KEY}#{number % keys}", number),  # type: ignore[misc]
                number / a_second,
            )
        self.time.run()

    def _put(self, key: str, number: int) -> None:
        item = {"PK": {"S": key}, "SK": {"S": f"AGENT#{number:09d}"}}
        try:
            self.client.put_item(Item=item)
        except ClientError as error:
            self.refused.append(error.response["Error"]["Code"])


def test_what_a_partition_takes_is_not_throttled() -> None:
    writer = Writer()
    writer.put(a_second=WRITES_A_SECOND, seconds=2)
    assert writer.partitions.throttled["write"] == 0
    assert len(writer.table.items) == 2 * WRITES_A_SECOND


def test_more_than_a_partition_takes_is_throttled() -> None:
    """For good as soon as botocore's quota of retries is used up."""
    writer = Writer(patient=False)
    writer.put(a_second=3 * WRITES_A_SECOND, seconds=1)
    (taken,) = writer.partitions.written.values()
    for second in range(max(taken) + 1):
        so_far = sum(taken[earlier] for earlier in range(second + 1))
        assert so_far <= WRITES_A_SECOND * (second + 2)  # a second's worth had been left over
    assert set(writer.refused) == {"ThrottlingException"}
    assert len(writer.table.items) + len(writer.refused) == 3 * WRITES_A_SECOND


def test_another_key_has_a_partition_of_its_own() -> None:
    writer = Writer()
    writer.put(a_second=3 * WRITES_A_SECOND, seconds=1, keys=3)
    assert writer.partitions.throttled["write"] == 0


def test_patience_outlasts_the_quota() -> None:
    writer = Writer()
    writer.put(a_second=3 * WRITES_A_SECOND, seconds=1)
    assert writer.refused == []
    assert len(writer.table.items) == 3 * WRITES_A_SECOND


def test_a_request_is_tried_as_often_as_the_clients_say() -> None:
    retries = Retries(random.Random(1))  # noqa: S311 - jitter
    context: dict[str, object] = {}
    pauses = [retries.pause(attempt, context) for attempt in range(1, ATTEMPTS + 1)]
    assert None not in pauses[:-1]
    assert pauses[-1] is None


def test_a_retry_that_succeeds_gives_back_what_it_took_of_the_quota() -> None:
    retries = Retries(random.Random(1))  # noqa: S311 - jitter
    contexts: list[dict[str, object]] = [{}]
    while retries.pause(1, contexts[-1]) is not None:
        contexts.append({})
    assert len(contexts) == 101
    retries.succeeded(contexts[0])
    assert retries.pause(1, {}) is not None
    assert retries.pause(1, {}) is None


def test_what_is_too_much_at_once_is_paid_off_first() -> None:
    allowance = Allowance(a_second=10, burst_s=1)
    assert allowance.admits(now=0)
    allowance.take(30)
    assert not allowance.admits(now=2)
    assert allowance.admits(now=2.1)


@pytest.mark.parametrize("burst_s", [1, 300])
def test_unused_allowance_is_kept_for_so_long(burst_s: int) -> None:
    allowance = Allowance(a_second=10, burst_s=burst_s)
    assert allowance.admits(now=10_000)
    allowance.take(10 * burst_s)
    assert not allowance.admits(now=10_000)


def test_a_message_that_fails_comes_again_and_then_is_dead() -> None:
    clock = VirtualTime()
    tried: list[float] = []

    def fail(event: dict[str, object]) -> dict[str, object]:
        tried.append(clock.now)
        return {"batchItemFailures": [{"itemIdentifier": "m-0"}]}

    queue = PolledQueue(clock, Redelivery(720, deliveries=3, timeout_s=120), lambda: fail)
    queue.send("{}")
    clock.run()
    assert tried == [0, 720, 1_440]
    assert [message.receives for message in queue.dead] == [3]
    assert not queue.unfinished


def test_pollers_begin_with_five_and_grow_by_five_a_second() -> None:
    clock = VirtualTime()
    busy: list[tuple[float, int]] = []
    at_work = 0

    def work(event: dict[str, object]) -> dict[str, object]:
        nonlocal at_work
        at_work += 1
        busy.append((clock.now, at_work))
        clock.sleep(10)
        at_work -= 1
        return {}

    queue = PolledQueue(clock, Redelivery(720, 3, 120, most_at_once=12), lambda: work)
    for _ in range(300):
        queue.send("{}")
    clock.run()
    most = {second: max(n for at, n in busy if at <= second) for second in (0, 1, 2, 20)}
    assert most == {0: 5, 1: 10, 2: 12, 20: 12}


def test_a_pool_does_so_many_things_at_once() -> None:
    clock = VirtualTime()
    finished: list[float] = []

    def work() -> None:
        def one(number: int) -> int:
            clock.sleep(1)
            return number

        assert Pool(clock, threads=2).map(one, range(5)) == [0, 1, 2, 3, 4]
        finished.append(clock.now)

    clock.spawn(work)
    clock.run()
    assert finished == [3]
