"""Exact behind a network that throttles, fails, and loses answers to what was carried out."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

import pytest

from functions.core import keys
from functions.core.api_ports import RunRecord
from functions.core.keys import RunRef
from functions.core.model import Totals
from local import function_logs, queues, waiting
from local.reading import Reading
from local.reconciling import Drift, Reconcile
from local.recordings import Recording
from local.sending import send
from local.stage import Stage
from runtally import wire
from tests import build
from tests.build import SECOND, T0, ended, started, step
from tests.e2e.faulty import FAULTS, OF_TOTALS, OUTAGE, QUICK_FAULTS, FaultyNetwork, Rule
from tests.invariants import sums_of

pytestmark = pytest.mark.xdist_group("stage")

COST = Decimal("0.000123456789012345")
PACKED = 10
FAN_OUT = 8
REDELIVERED_AFTER_S = 10


@dataclass(frozen=True, slots=True)
class Sent:
    ref: RunRef
    buckets: int
    steps: Sequence[wire.Step]

    def messages(self) -> Iterator[Recording]:
        """Every fifth twice."""
        packs: list[tuple[wire.Event, ...]] = [(started(),)]
        packs += [*itertools.batched(self.steps, PACKED, strict=False), (ended(),)]
        for number, events in enumerate(packs):
            body = build.body(*events, run=self.ref, buckets=self.buckets).encode()
            message = Recording(self.ref.tenant_id, self.ref.run_id, (body,))
            yield from [message] * (2 if number % 5 == 0 else 1)


def a_run(run_id: str, steps: int, buckets: int = 1) -> Sent:
    return Sent(RunRef("acme", run_id), buckets, [a_step(n, steps) for n in range(steps)])


def a_step(n: int, of: int) -> wire.Step:
    return step(
        n,
        phase=f"phase {n * 5 // of}",
        status="failed" if n % 50 == 0 else "succeeded",
        started_at=T0 + n // FAN_OUT * SECOND,
        ended_at=T0 + (n // FAN_OUT + 1) * SECOND,
        cost_usd=None if n % 10 == 9 else f"{COST * n:f}",
        input_tokens=n,
        output_tokens=1,
        payload={"n": n, "text": "語" * (n % 700)},
    )


@pytest.mark.parametrize(
    ("runs", "steps", "faults", "within_s"),
    [
        pytest.param(3, 100, QUICK_FAULTS, 120, id="300 steps"),
        pytest.param(
            *(5, 1_000, FAULTS, 300),
            id="5000 steps",
            marks=[pytest.mark.large, pytest.mark.timeout(600)],
        ),
    ],
)
def test_every_step_is_counted_once_whatever_the_network_does(
    stage: Stage, runs: int, steps: int, faults: Mapping[str, Rule], within_s: float
) -> None:
    sent = [a_run(f"faulty-{steps}-{n}", steps, buckets=2 if n == 0 else 1) for n in range(runs)]
    # Only for steps that come behind their run's end does summarize send a message itself.
    late = [next(itertools.islice(run.messages(), 2, None)) for run in sent]
    messages = [message for run in sent for message in run.messages() if message not in late]
    random.Random(8).shuffle(messages)  # noqa: S311 - the same order every time
    reading = Reading.of(stage, "acme")
    dead_letters = queues.dead_letters(stage)
    failed = batches_failed(stage)
    with FaultyNetwork.before(stage) as network:
        network.begin(faults)
        send(stage, messages)
        until(within_s, lambda: all(record_of(reading, run).summary for run in sent))
        send(stage, late)
        until(within_s, lambda: all(is_counted(record_of(reading, run), run) for run in sent))
        network.end()
        waiting.until_quiet(stage, network.requests, within_s=60)
        happened, requests = network.happened(), network.requests()

    assert_happened(faults, happened, requests)
    assert queues.dead_letters(stage) == dead_letters
    # The SDK's six attempts outlast these faults, so that not even the emulator loses a batch.
    assert batches_failed(stage) == failed
    for run in sent:
        assert_sums(record_of(reading, run).totals, run)
        assert reconciled_drift(reading, run) == []
        assert_readable(reading, run)


@pytest.mark.large
def test_outages_that_no_sdk_outlasts_leave_the_summary_exact(stage: Stage) -> None:
    """Ingest's messages come again. Of the stream, the emulator takes a partial failure for a
    success: what AWS would deliver again is lost to TOTALS here, and only a recount finds it."""
    run = a_run("outages", steps=100)
    reading = Reading.of(stage, "acme")
    dead_letters = queues.dead_letters(stage)
    refused, failed = messages_failed(stage), batches_failed(stage)
    totals_fail = {"TOTALS": {"service": "dynamodb", "body": OF_TOTALS, **OUTAGE}}
    with FaultyNetwork.before(stage) as network, redelivered_soon(stage):
        network.begin({"S3": {"service": "s3", **OUTAGE}, **totals_fail})
        *before, end = run.messages()
        send(stage, before)
        until(60, lambda: messages_failed(stage) > refused)
        network.begin(totals_fail)
        until(60, lambda: is_stored(reading, run))
        until(30, lambda: batches_failed(stage) > failed)
        network.end()
        send(stage, [end])
        until(30, lambda: record_of(reading, run).summary is not None)
        waiting.until_quiet(stage, network.requests, within_s=60)

    assert queues.dead_letters(stage) == dead_letters
    assert record_of(reading, run).totals.agents_total < len(run.steps)
    assert {found.item for found in reconciled_drift(reading, run)} == {"TOTALS"}
    assert_readable(reading, run)


def record_of(reading: Reading, run: Sent) -> RunRecord:
    return reading.reader.record_of(run.ref)


def until(within_s: float, condition: Callable[[], bool]) -> None:
    waiting.until(lambda: condition() or None, within_s, "What the test waits for did not happen")


def is_counted(record: RunRecord, run: Sent) -> bool:
    summarised = record.summary.totals if record.summary else Totals()
    return record.totals.agents_total == summarised.agents_total == len(run.steps)


def is_stored(reading: Reading, run: Sent) -> bool:
    record = record_of(reading, run)
    return record.run is not None and len(run.steps) == sum(
        1 for _ in reading.reader.calls_of_run(record.run, "")
    )


def messages_failed(stage: Stage) -> Decimal:
    """Messages that ingest asked for again."""
    return function_logs.sum_of_metric(stage, "MessagesFailed")


def batches_failed(stage: Stage) -> Decimal:
    """Runs of which the stream's mapping was told that records could not be counted."""
    return function_logs.sum_of_metric(stage, "RunsFailed")


@contextmanager
def redelivered_soon(stage: Stage) -> Iterator[None]:
    """What ingest could not record comes again after seconds, not after minutes."""
    queue = stage.event_queue_url
    found = stage.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout"])

    def give(seconds: str) -> None:
        stage.sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": seconds})

    give(f"{REDELIVERED_AFTER_S}")
    try:
        yield
    finally:
        give(found["Attributes"]["VisibilityTimeout"])


def assert_happened(
    faults: Mapping[str, Rule], happened: Mapping[str, int], requests: Mapping[str, int]
) -> None:
    """Each kind of fault, in about its share of the requests that it is for."""
    for name, rule in faults.items():
        times = happened.get(name, 0)
        assert times >= 1, (name, happened)
        if "body" not in rule:  # else it is for a few of the service's requests only
            service, sequence = rule["service"], rule["sequence"]
            of = sum(requests.values()) if service == "*" else requests[service]
            due = of / (sequence["fail"] + sequence["pass"])
            assert 0.8 * due - 1 <= times <= due + 1, (name, happened, requests)


def assert_sums(totals: Totals, run: Sent) -> None:
    """Against sums over what was sent, made here and not by the code's fold."""
    found, expected = totals.as_attributes(), sums_of(list(run.steps))
    assert {name: found[name] for name in expected} == expected


def reconciled_drift(reading: Reading, run: Sent) -> Sequence[Drift]:
    """Where readers see an exact run: the summary, and the calls, are what was sent."""
    reconciled = Reconcile(reading.reader, lambda: None)(run.ref)
    assert reconciled is not None
    assert reconciled.calls == len(run.steps)
    assert reconciled.shown_exactly
    summary = record_of(reading, run).summary
    assert summary is not None
    assert_sums(summary.totals, run)
    phases = {phase.phase: phase.calls for phase in summary.phases}
    assert phases == Counter(sent.phase for sent in run.steps)
    return reconciled.drift


def assert_readable(reading: Reading, run: Sent) -> None:
    """Every call is there once, in order, with its payload byte for byte, held to its digest."""
    record = record_of(reading, run)
    assert record.run is not None
    found = [item[keys.SORT] for item in reading.reader.calls_of_run(record.run, "")]
    assert found == [keys.STEP_PREFIX + sent.step_id for sent in run.steps]
    for sent in run.steps:
        read = reading.api.stored.payload(run.ref, sent.step_id).answer
        assert (read.payload_state, read.payload) == ("ok", sent.payload), sent.step_id
