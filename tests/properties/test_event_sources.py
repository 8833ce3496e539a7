"""The real handlers behind the template's own event source mappings, with AWS's semantics."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from functions.core import keys
from functions.ingest import handler as ingest_handler
from functions.ingest.record import Result
from functions.summarize import handler as summarize_handler
from tests import build, invariants
from tests.build import RUN
from tests.fakes.calls import client_error
from tests.fakes.sqs import MemoryQueue, Sent
from tests.infra.assembly import resources_of, synthesise
from tests.memory_stage import RECOUNTS, MemoryStage, passes_filter
from tests.runner.queues import QueueMapping, QueueRunner
from tests.runner.streams import Record, StreamMapping, StreamRunner

pytestmark = pytest.mark.xdist_group("cdk")


@pytest.fixture(scope="module")
def mappings() -> dict[str, dict[str, Any]]:
    """The properties of the event source mappings, by the function that they feed."""
    found = resources_of(synthesise("dev").pipeline, "AWS::Lambda::EventSourceMapping")
    return {path.split("/")[0].casefold(): properties for path, properties in found.items()}


@pytest.fixture
def stream_mapping(mappings: dict[str, dict[str, Any]]) -> StreamMapping:
    return StreamMapping.from_template(mappings["summarize"])


@pytest.fixture
def queue_mapping(mappings: dict[str, dict[str, Any]]) -> QueueMapping:
    return QueueMapping.from_template(mappings["ingest"])


def stream_runner(
    stage: MemoryStage, mapping: StreamMapping, given_up: list[Record]
) -> StreamRunner:
    return StreamRunner(
        mapping,
        lambda event: summarize_handler.process(event, stage.summarize_parts),
        given_up.extend,
    )


def queue_runner(stage: MemoryStage, mapping: QueueMapping, queue: MemoryQueue) -> QueueRunner:
    return QueueRunner(
        mapping, queue, lambda event: ingest_handler.process(event, stage.ingest_parts)
    )


def test_a_poisoned_record_is_passed_and_the_failed_batch_repairs_the_run(
    stream_mapping: StreamMapping,
) -> None:
    """F20, I10: the other 19 are counted, the poison is kept, and a recount makes up for it."""
    stage = MemoryStage()
    steps = [build.step(n, cost_usd="0.1") for n in range(1, 21)]
    stage.ingest(build.body(*steps, build.ended()))
    records = stage.dynamodb.stream
    poisoned = next(r for r in records if r["dynamodb"]["Keys"]["SK"]["S"].endswith("00000007"))
    image = dict(poisoned["dynamodb"]["NewImage"])
    poisoned["dynamodb"]["NewImage"] = image | {"cost_usd": {"N": "1" * 39}}
    given_up: list[Record] = []
    passed_after: list[int] = []
    runner = stream_runner(stage, stream_mapping, given_up)

    def give_up(batch: list[Record]) -> None:
        given_up.extend(batch)
        passed_after.append(len(runner.deliveries))

    runner.given_up = give_up
    runner.deliver(records)

    assert given_up == [poisoned]
    assert passed_after[0] <= math.ceil(math.log2(20)) + stream_mapping.retries
    assert (stage.item(RUN, keys.TOTALS) or {})["agents_total"] == 19
    name = "failed/batch"
    stage.failed_batches.objects[name] = json.dumps(
        {"payload": json.dumps({"Records": given_up})}
    ).encode()
    notification = json.dumps({"Records": [{"s3": {"object": {"key": name}}}]})
    stage.sqs.queues.setdefault(RECOUNTS, []).append(Sent("n", notification))
    stage.drain()
    summary = stage.item(RUN, keys.SUMMARY)
    assert summary is not None
    assert (summary["agents_total"], str(summary["cost_usd_total"])) == (20, "2")


def test_a_lost_batch_leaves_the_totals_behind_but_never_the_summary(
    stream_mapping: StreamMapping,
) -> None:
    stage = MemoryStage()
    steps = [build.step(n, cost_usd="0.1") for n in range(1, 11)]
    stage.ingest(build.body(*steps, build.ended()))
    *first, last = [record for record in stage.dynamodb.stream if passes_filter(record)]
    stream_runner(stage, stream_mapping, []).deliver([*first[5:], last])  # five are lost
    assert (stage.item(RUN, keys.TOTALS) or {})["agents_total"] == 5
    assert (stage.item(RUN, keys.SUMMARY) or {})["agents_total"] == 10


def test_the_whole_stream_again_from_the_start_changes_nothing(
    stream_mapping: StreamMapping,
) -> None:
    """F22."""
    stage = MemoryStage()
    steps = [build.step(n, cost_usd="0.1") for n in range(1, 31)]
    stage.ingest(build.body(build.started(), *steps[:20]), build.body(*steps[20:], build.ended()))
    runner = stream_runner(stage, stream_mapping, [])
    runner.deliver(stage.dynamodb.stream)
    before = invariants.final_state(stage, RUN)
    runner.deliver(stage.dynamodb.stream)
    stage.drain()
    assert invariants.final_state(stage, RUN) == before
    invariants.counted_exactly(stage, RUN, steps)


def test_what_summarize_writes_never_comes_back_to_it(stream_mapping: StreamMapping) -> None:
    """F23: the template's patterns pass what the stage's plain words pass, and nothing else."""
    stage = MemoryStage()
    stage.ingest(build.body(build.started(), build.log(1, "hi")))
    stage.ingest(build.body(build.step(1), build.ended(result="ok")))
    given: list[Record] = []
    taking = StreamRunner(
        stream_mapping, lambda event: given.extend(event["Records"]), given.extend
    )
    taking.deliver(stage.dynamodb.stream)
    assert given == [r for r in stage.dynamodb.stream if passes_filter(r)]
    assert len(given) == 2
    written_before = len(stage.dynamodb.stream)
    stream_runner(stage, stream_mapping, []).deliver(stage.dynamodb.stream)
    own = stage.dynamodb.stream[written_before:]
    sorts = {r["dynamodb"]["Keys"]["SK"]["S"] for r in own}
    assert sorts == {"TOTALS", "PREVIEW", "SUMMARY"}
    given.clear()
    taking.deliver(own)
    assert given == []


@pytest.mark.parametrize("failures", [1, 5])
def test_throttles_are_outlasted_one_batch_at_a_time(
    stream_mapping: StreamMapping, failures: int
) -> None:
    stage = MemoryStage()
    steps = [build.step(n) for n in range(1, 9)]
    stage.ingest(build.body(*steps, build.ended()))
    left = failures

    def throttle(call: str, when: str) -> None:
        nonlocal left
        if when == "before" and call == "dynamodb.update_item" and left:
            left -= 1
            raise client_error(call, "ThrottlingException")

    stage.calls.hook = throttle
    given_up: list[Record] = []
    stream_runner(stage, stream_mapping, given_up).deliver(stage.dynamodb.stream)
    assert given_up == []
    stage.drain()
    invariants.counted_exactly(stage, RUN, steps)


def test_messages_are_outlasted_through_refused_invocations(queue_mapping: QueueMapping) -> None:
    """F4: throttled invocations count as receives, four of them do no harm."""
    stage = MemoryStage()
    queue = MemoryQueue(max_receives=6, waiting=[Sent("m", build.body(build.step(1)))])
    refusals = iter(range(4))

    def invoke(event: dict[str, Any]) -> Any:
        if next(refusals, None) is not None:
            raise RuntimeError("throttled")
        return ingest_handler.process(event, stage.ingest_parts)

    QueueRunner(queue_mapping, queue, invoke).drain()
    assert queue.dead == []
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 1


def test_a_message_that_always_fails_is_isolated(queue_mapping: QueueMapping) -> None:
    """I10: its neighbours are stored at the first delivery, it ends among the dead letters."""
    stage = MemoryStage()
    waiting = [Sent(str(n), build.body(build.step(n))) for n in range(1, 11)]
    queue = MemoryQueue(max_receives=6, waiting=list(waiting))
    poison = build.step_id(7)

    sound = stage.ingest_parts

    def defective(body: str) -> Result:
        if poison in body:
            raise ZeroDivisionError("a defect")
        return sound.record(body)

    stage.ingest_parts = replace(sound, record=defective)  # type: ignore[arg-type]
    queue_runner(stage, queue_mapping, queue).drain()
    assert [sent.message_id for sent in queue.dead] == ["7"]
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 9
    assert {s.receives for s in waiting if s.message_id != "7"} == {1}
    # The dead letter is redriven once the defect is mended: as if nothing had happened (I12).
    stage.ingest_parts = sound
    again = MemoryQueue(max_receives=6, waiting=[Sent("7", queue.dead[0].body)])
    queue_runner(stage, queue_mapping, again).drain()
    stage.drain()
    invariants.counted_exactly(stage, RUN, [build.step(n) for n in range(1, 11)])


@pytest.mark.parametrize(
    "answer",
    [
        {"batchItemFailures": [{"itemIdentifier": "unknown"}]},
        {"batchItemFailures": [{"itemIdentifier": ""}]},
        {"batchItemFailures": [{"wrong": "m"}]},
    ],
)
def test_the_runner_fails_a_batch_whose_answer_names_nothing_in_it(
    queue_mapping: QueueMapping, answer: dict[str, Any]
) -> None:
    queue = MemoryQueue(max_receives=3, waiting=[Sent("m", "x"), Sent("n", "y")])
    QueueRunner(queue_mapping, queue, lambda event: answer).drain()
    assert [sent.message_id for sent in queue.dead] == ["m", "n"]
